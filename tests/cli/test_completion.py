"""`aforesaid completion`: scripts for shells, and what they offer, in a real bash where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from aforesaid.cli import commands
from aforesaid.cli.completion import SHELLS, VARIABLE
from aforesaid.cli.rpc import methods
from tests.cli.conftest import SECONDS, Command, bare
from tests.conftest import missing

# fish hands over the word that is typed, the others its number.
COMP_CWORD = {"bash": "2", "zsh": "2", "fish": "--col"}

# Completes a line as readline does: the words so far, the last of them being typed.
ASK = """
eval "$(aforesaid completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
"$(complete -p aforesaid | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" aforesaid
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash() -> str:
    found = shutil.which("bash")
    return found if found is not None else missing("no bash on this machine")


def offered(bash: str, scripts_path: str, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    done = subprocess.run(
        [bash, "--norc", "-c", ASK, "bash", "aforesaid", *words],
        env=bare(None) | {"PATH": scripts_path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("",), set(commands.commands)),
        (("se",), {"search"}),
        (("search", "--ar"), {"--around"}),
        (("search", "word", "-other", "--ne"), {"--newest"}),
        (("search", "--color", ""), {"auto", "always", "never"}),
        (("search", "--role", "a"), {"assistant"}),
        (("search", "--kind", "tool-r"), {"tool-result", "tool-result-text", "tool-result-json"}),
        (("search", "--limit", ""), set()),
        (("completion", ""), set(SHELLS)),
        (("rpc", ""), set(methods())),
        (("rpc", "list-"), {name for name in methods() if name.startswith("list-")}),
        (("rpc", "search-transcripts", "--pagination.l"), {"--pagination.limit"}),
        (("rpc", "search-transcripts", "--words", ""), {"stemmed", "as_typed"}),
        (("rpc", "search-transcripts", "--order", "ORDER_N"), {"newest"}),
        (("show", "--w"), {"--whole"}),
        (("delete", "--y"), {"--yes"}),
        (("rpc", "search-transcripts", "--part-kinds", "tool_r"), {"tool_result_text", "tool_result_json"}),
    ],
)
def test_bash_completes(words: tuple[str, ...], told: set[str], bash: str, scripts_path: str) -> None:
    assert offered(bash, scripts_path, *words) == told


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script_that_asks_the_program(shell: str, piped: Command) -> None:
    ended = piped("completion", shell)
    assert (ended.code, ended.err) == (0, "")
    assert f"{VARIABLE}={shell}_complete" in ended.out
    # With the words as that shell hands them over, the program answers in that shell's form.
    environment = {
        VARIABLE: f"{shell}_complete",
        "COMP_WORDS": "aforesaid search --col",
        "COMP_CWORD": COMP_CWORD[shell],
    }
    assert "--color" in piped(environment=environment).out


def test_completion_works_where_no_bash_is(piped: Command, tmp_path: Path) -> None:
    assert piped("completion", "zsh", environment={"PATH": str(tmp_path)}).code == 0
