"""Notices in the words of the command line: flags for fields, and nothing of what somebody typed or is called is changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.cli.notices import in_flags
from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("notice", "told"),
    [
        (
            "`x` is said, but not within part_kinds. Try it without part_kinds.",
            "`x` is said, but not within --kind. Try it without --kind.",
        ),
        ("even without roles, since and until", "even without --role, --since and --until"),
        ("Try `a b` without project and conversation_id", "Try `a b` without --project and --conversation"),
        ("Try it with include_own_searches.", "Try it with --own-searches."),
        ("Try it with words WORDS_STEMMED.", "Try it without --as-typed."),
        ("Try it with match MATCH_ALL_WORDS.", "Try it without --substring."),
        ("WORDS_AS_TYPED makes no difference to MATCH_SUBSTRING.", "--as-typed makes no difference to --substring."),
        ("There are more: next_page_token goes on.", "There are more: --all goes on."),
        ("Nothing was found: project has no conversation here.", "Nothing was found: project has no conversation here."),
        ("Nothing was found: without roles-2 nothing", "Nothing was found: without roles-2 nothing"),
        ("`without project` is said nowhere, even without project.", "`without project` is said nowhere, even without --project."),
        ("Try `include_own_searches MATCH_SUBSTRING`.", "Try `include_own_searches MATCH_SUBSTRING`."),
    ],
)
def test_fields_are_flags(notice: str, told: str) -> None:
    assert in_flags(notice) == told


@given(st.text(st.characters(exclude_characters="`")))
def test_what_is_quoted_stays_as_it_is(text: str) -> None:
    assert in_flags(f"`{text}` is said nowhere.") == f"`{text}` is said nowhere."


def test_the_services_notices_name_flags(service_url: str, piped: Command) -> None:
    ended = piped(
        "search", "--substring", "nobody says part_kinds here", "--kind", "file", "--project", "/nowhere", "--url", service_url
    )
    assert (ended.code, ended.out) == (1, "")
    assert "`nobody says part_kinds here`" in ended.err
    assert "--kind" in ended.err
    assert "part_kinds" not in ended.err.replace("`nobody says part_kinds here`", "")
