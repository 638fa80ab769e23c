"""The pages for people: their links lead somewhere, and the examples that are marked do what they say.

A fenced block is run when the line `<!-- checked -->` stands right before it. Its lines that begin with `$ ` are commands for a
shell, at the root of the repository, against a server that holds examples/ (the default addresses in them are replaced by that
server's, and `aforesaid` is on the path). A command ends where no backslash or open quote carries it on; what follows, up to the
next `$ `, is its output:

- JSON is compared as JSON: fields that the page leaves out are not looked at, `"..."` stands for any value, and at the end of a
  list for any further ones; a string that ends with `...` stands for what begins so;
- any other output is compared line by line; `...` stands for any run of characters, and alone on a line for any lines.

A marked block of Python is a program of its own. What it prints is the block of `text` right after it, compared as above, or
nothing. It runs against a server that holds examples/ and that all of them share, so it may write; its warnings are errors.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from scripts.running_server import EXAMPLES, ROOT, RunningServer, start
from tests.conftest import end, missing

MARK = "<!-- checked -->"
FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\((?P<image>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}[ \t]+(?P<text>.+?)[ \t]*#*$", re.MULTILINE)
DEFAULT_URL, DEFAULT_GRPC = "http://127.0.0.1:8787", "127.0.0.1:8788"
# Folders that hold no page of ours.
LEFT_OUT = {"build", "dist", "node_modules"}


def pages() -> list[Path]:
    """The Markdown files of the repository, README first."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in LEFT_OUT)
        found += [Path(folder) / name for name in sorted(files) if name.endswith(".md")]
    return found


PAGES = pages()


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# Links


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors of the headings as GitHub makes them: lower case, no punctuation, blanks to hyphens, repeats numbered."""
    seen: dict[str, int] = {}
    for heading in HEADING.finditer(FENCE.sub("", text)):
        anchor = re.sub(r"[^\w\- ]", "", heading["text"].lower()).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
    return {anchor if number == 0 else f"{anchor}-{number}" for anchor, last in seen.items() for number in range(last + 1)}


def dead_links(page: Path) -> Iterator[str]:
    """Yields each relative link of a page whose file or heading is not there."""
    text = page.read_text("utf-8")
    for link in LINK.finditer(without_code(text)):
        target = link["target"] or link["image"]
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{target}: no such file"
        elif not file.is_relative_to(ROOT):
            yield f"{target}: outside the repository"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text("utf-8")):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_a_dead_link_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_docs.ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# One thing: a `word`!\n# Twice\n# Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#one-thing-a-word) [c](other.md#twice-1) [d](https://example.org/x) `[e](code.md)`\n"
        "```\n[f](fence.md)\n```\n"
        "[g](gone.md) ![h](gone.png) [i](other.md#twice-2) [j](#nowhere) [k](../up.md)\n"
    )
    (tmp_path.parent / "up.md").write_text("")
    assert list(dead_links(page)) == [
        "gone.md: no such file",
        "gone.png: no such file",
        "other.md#twice-2: no such heading",
        "#nowhere: no such heading",
        "../up.md: outside the repository",
    ]


@pytest.mark.parametrize("command", ["make serve", "make demo"])
def test_readme_names_the_commands_to_begin_with(command: str) -> None:
    blocks = [fence["text"] for fence in FENCE.finditer((ROOT / "README.md").read_text("utf-8"))]
    assert any(re.search(rf"^(\$ )?{command}\b", block, re.MULTILINE) for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_a_page_names_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = re.findall(r"(?:^|`|\$ )(?:\w+=\S+ )*make ([a-z-]+)\b", page.read_text("utf-8"), re.MULTILINE)
    assert sorted(set(named) - targets) == []


# Examples


@dataclass(frozen=True, slots=True)
class Example:
    """A command or a Python program of a page with the output that the page shows. `line` is where it stands."""

    page: str
    line: int
    command: str
    output: str
    is_python: bool = False

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples(name: str, text: str) -> Iterator[Example]:
    """Yields the commands and programs of the marked blocks of a page, in order."""
    fences = list(FENCE.finditer(text))
    for fence, following in zip_longest(fences, fences[1:]):
        before = text[: fence.start()]
        if before.rstrip("\n").rpartition("\n")[2].strip() != MARK:
            continue
        line = before.count("\n") + 2
        if fence["kind"] == "python":
            shown = following is not None and following["kind"] == "text" and not text[fence.end() : following.start()].strip()
            yield Example(name, line, fence["text"], following["text"] if shown and following else "", is_python=True)
        else:
            yield from commands(name, line, fence["text"].splitlines())


def commands(name: str, first: int, lines: list[str]) -> Iterator[Example]:
    """Yields the commands of a block; `first` is the number of its first line."""
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"{name}:{first + at}: a marked block begins with a command"
        begin, command = at, lines[at][2:]
        at += 1
        while carries_on(command) and at < len(lines):
            command += "\n" + lines[at]
            at += 1
        output = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        yield Example(name, first + begin, command, "\n".join(lines[output:at]))


def carries_on(command: str) -> bool:
    """Tells whether a shell would wait for another line: a backslash at the end, or a single quote that is open."""
    return command.endswith("\\") or command.count("'") % 2 == 1


def difference(expected: Any, actual: Any, path: str = "$") -> str:
    """Says where an answer is not what the page shows, empty where it is."""
    match expected, actual:
        case "...", _:
            return ""
        case str(), str() if expected.endswith("..."):
            return "" if actual.startswith(expected[:-3]) else f"{path} is {actual!r}, not {expected!r}"
        case dict(), dict():
            gone = [name for name in expected if name not in actual]
            if gone:
                return f"{path} has no {gone[0]}"
            return next((told for name in expected if (told := difference(expected[name], actual[name], f"{path}.{name}"))), "")
        case list(), list():
            shown, more = (expected[:-1], True) if expected and expected[-1] == "..." else (expected, False)
            if len(shown) > len(actual) or (len(shown) < len(actual) and not more):
                return f"{path} has {len(actual)} entries, not {len(shown)}"
            return next((told for at, want in enumerate(shown) if (told := difference(want, actual[at], f"{path}[{at}]"))), "")
        case _:
            return "" if type(expected) is type(actual) and expected == actual else f"{path} is {actual!r}, not {expected!r}"


def pattern(expected: str) -> re.Pattern[str]:
    """The output of a page as a pattern: `...` is any run of characters, alone on a line any lines."""
    any_lines, any_run, end = r"(?:[^\n]*\n)*?", ".*", r"[ \t]*\n"
    return re.compile(
        "".join(
            any_lines if line.strip() == "..." else any_run.join(map(re.escape, line.rstrip().split("..."))) + end
            for line in expected.splitlines()
        )
    )


def disagreement(expected: str, actual: str) -> str:
    """Says how a command's output differs from the page's, empty where it does not."""
    try:
        shown = json.loads(expected)
    except ValueError:
        said = actual.rstrip("\n")
        return "" if pattern(expected).fullmatch(said + "\n" if said else "") else f"printed\n{said}\nnot\n{expected}"
    try:
        return difference(shown, json.loads(actual))
    except ValueError:
        return f"printed no JSON:\n{actual}"


EXAMPLES_OF_PAGES = [example for page in PAGES for example in examples(name_of(page), page.read_text("utf-8"))]
COMMANDS_OF_PAGES = [example for example in EXAMPLES_OF_PAGES if not example.is_python]
PROGRAMS_OF_PAGES = [example for example in EXAMPLES_OF_PAGES if example.is_python]


@pytest.mark.parametrize("example", COMMANDS_OF_PAGES, ids=str)
def test_marked_examples_do_what_the_page_says(example: Example, example_server: RunningServer, scripts_path: str) -> None:
    if example.command.startswith("curl") and shutil.which("curl") is None:
        missing("no curl on this machine")
    command = example.command.replace(DEFAULT_URL, example_server.url).replace(DEFAULT_GRPC, example_server.grpc)
    environment = os.environ | {
        "PATH": scripts_path,
        "AFORESAID_URL": example_server.url,
        "NO_COLOR": "1",
        "COLUMNS": "132",
        "no_proxy": "*",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert disagreement(example.output, done.stdout.replace(example_server.url, DEFAULT_URL)) == ""


@pytest.fixture(scope="module")
def written_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RunningServer]]:
    """Gives each page a server of its own, which holds examples/ and what the programs of that page write."""
    servers: dict[str, RunningServer] = {}

    def of_page(page: str) -> RunningServer:
        if page not in servers:
            folder = tmp_path_factory.mktemp("programs")
            servers[page] = start(folder / "data", imports=[EXAMPLES], log=folder / "server.log")
        return servers[page]

    yield of_page
    for running in servers.values():
        end(running)


@pytest.mark.parametrize("example", PROGRAMS_OF_PAGES, ids=str)
def test_marked_programs_do_what_the_page_says(
    example: Example, written_servers: Callable[[str], RunningServer], tmp_path: Path
) -> None:
    written_server = written_servers(example.page)
    program = tmp_path / "program.py"
    program.write_text(example.command.replace(DEFAULT_URL, written_server.url), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=ROOT,
        env=os.environ | {"AFORESAID_URL": written_server.url, "XDG_CONFIG_HOME": str(tmp_path), "no_proxy": "*"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert disagreement(example.output, done.stdout.replace(written_server.url, DEFAULT_URL)) == ""


@pytest.mark.parametrize("page", ["docs/python.md", "docs/transcript-index.md"])
def test_every_program_of_a_page_about_python_is_checked(page: str) -> None:
    blocks = [fence for fence in FENCE.finditer((ROOT / page).read_text("utf-8")) if fence["kind"] == "python"]
    assert len(blocks) == sum(example.page == page for example in PROGRAMS_OF_PAGES) > 0


def test_programs_of_pages_are_typed(tmp_path: Path) -> None:
    for number, example in enumerate(PROGRAMS_OF_PAGES):
        (tmp_path / f"program_{number}.py").write_text(example.command, "utf-8")
    names = sorted(path.name for path in tmp_path.glob("*.py"))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", *names]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == f"Success: no issues found in {len(names)} source file{'s' if len(names) > 1 else ''}\n", done.stderr


def test_readme_shows_a_search_that_is_checked() -> None:
    shown = [example.command for example in EXAMPLES_OF_PAGES if example.page == "README.md"]
    assert any(command.startswith("curl") and "SearchTranscripts" in command for command in shown)


PAGE = f"""Text
{MARK}
```console
$ curl -d '{{
  "query": "x"}}' \\
    url
{{"matches": [{{"seq": 1}}, "..."]}}
$ second
```

```console
$ not marked
```

{MARK}
```python
print("a\\nb")
```

```text
a
b
```

{MARK}
```python
pass
```

Words

```text
no output
```
"""


def test_commands_and_outputs_are_told_apart() -> None:
    first, second, third, fourth = examples("page.md", PAGE)
    assert (first.line, first.command.splitlines()[-1], second.line, second.command) == (4, "    url", 8, "second")
    assert (json.loads(first.output), second.output) == ({"matches": [{"seq": 1}, "..."]}, "")
    assert (third.line, third.command, third.output, third.is_python) == (17, 'print("a\\nb")\n', "a\nb\n", True)
    assert (fourth.command, fourth.output, fourth.is_python) == ("pass\n", "", True)


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        ('{"a": 1}', '{"a": 1, "b": 2}', ""),
        ('{"a": 1}', '{"b": 1}', "$ has no a"),
        ('{"a": 1}', '{"a": "1"}', "$.a is '1', not 1"),
        ('{"a": true}', '{"a": 1}', "$.a is 1, not True"),
        ('{"a": "..."}', '{"a": [1]}', ""),
        ('{"a": "sha256:..."}', '{"a": "sha256:00"}', ""),
        ('{"a": "sha256:..."}', '{"a": "md5:00"}', "$.a is 'md5:00', not 'sha256:...'"),
        ("[1, 2]", "[1, 2, 3]", "$ has 3 entries, not 2"),
        ('[1, "..."]', "[1, 2, 3]", ""),
        ('[1, 2, "..."]', "[1]", "$ has 1 entries, not 2"),
        ('{"a": [{"b": 1}]}', '{"a": [{"b": 2}]}', "$.a[0].b is 2, not 1"),
        ("{}", "curl: no", "printed no JSON:\ncurl: no"),
        ("one ... three\n...\nlast", "one two three\nx\ny\nlast\n", ""),
        ("one ... three\n...\nlast", "one two three\nlast\n", ""),
        ("one", "one\ntwo\n", "printed\none\ntwo\nnot\none"),
        ("", "", ""),
        ("", "noise\n", "printed\nnoise\nnot\n"),
    ],
)
def test_what_counts_as_the_same_output(expected: str, actual: str, told: str) -> None:
    assert disagreement(expected, actual) == told
