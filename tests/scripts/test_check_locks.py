"""What the check of the locks finds: a requirement without a pin, a pin that does not satisfy it, a pin without hashes."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from scripts.check_locks import of_group, pins, unanswered

LOCK = """\
one==1.2 \\
    --hash=sha256:00 \\
    --hash=sha256:01
Two_Words==2.0 ; sys_platform != 'win32' \\
    --hash=sha256:02
three==3.0
"""


def test_pins_are_read_by_their_canonical_names() -> None:
    assert pins(LOCK) == {"one": "1.2", "two-words": "2.0", "three": "without a hash"}


@pytest.mark.parametrize(
    ("requirement", "told"),
    [
        ("One>=1,<2", []),
        ("two.words", []),
        ("one>=2", ["one is 1.2, which does not satisfy one>=2"]),
        ("four", ["no pin for four"]),
    ],
)
def test_a_requirement_is_answered_by_a_pin_that_satisfies_it(requirement: str, told: list[str]) -> None:
    assert list(unanswered([Requirement(requirement)], pins(LOCK))) == told


def test_what_an_installed_package_asks_for_must_be_pinned_too() -> None:
    told = list(unanswered([Requirement("pytest")], {"pytest": "9.2.0"}))
    assert any(line.startswith("no pin for pluggy") for line in told)


def test_a_group_holds_those_that_it_includes() -> None:
    groups = {"dependency-groups": {"a": ["x"], "b": [{"include-group": "a"}, "y"]}}
    assert list(of_group(groups, "b")) == ["x", "y"]
