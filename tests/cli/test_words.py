"""Which arguments of `aforesaid search` are words of the query and which are options."""

from __future__ import annotations

import pytest

from aforesaid.cli.words import UnknownOption, apart

KNOWN = {"--agent": True, "--limit": True, "--json": False, "-h": False, "--help": False}


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ("charged -twice", "", "charged -twice"),
        ("-this charged", "", "-this charged"),
        ("charged -help --json -j", "--json", "charged -help -j"),
        ("charged --limit 5 -twice --agent=-srv-shop", "--limit 5 --agent=-srv-shop", "charged -twice"),
        ("--agent -srv-shop charged", "--agent -srv-shop", "charged"),
        ("charged -h", "-h", "charged"),
        ("charged - --", "", "charged -"),
        ("git push --force", "", "git push --force"),
        ("git push --force=yes", "", "git push --force=yes"),
        ("charged -- --json -- -h", "", "charged --json -- -h"),
        ("--limit -- charged", "--limit --", "charged"),
        ("", "", ""),
    ],
)
def test_what_is_a_word_and_what_an_option(arguments: str, options: str, words: str) -> None:
    assert apart(arguments.split(), KNOWN) == (options.split(), words.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--agnet x", "no such option --agnet, did you mean --agent?"),
        ("x --jsno", "no such option --jsno, did you mean --json?"),
        ("x --limt=5", "no such option --limt, did you mean --limit?"),
        ("--force x", "no such option --force:"),
        ("x --limit", "option --limit requires an argument"),
    ],
)
def test_a_slip_is_told(arguments: str, told: str) -> None:
    with pytest.raises(UnknownOption) as caught:
        apart(arguments.split(), KNOWN)
    assert str(caught.value).startswith(told)
