"""The names of `aforesaid` are loaded when they are first used, and each is the one that its module defines."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import aforesaid
from aforesaid import _calls, _client
from tests.client.both import LOCAL


def homes() -> dict[str, str]:
    """Each public name with the module that the type checker finds it in."""
    tree = ast.parse(Path(aforesaid.__file__).read_text("utf-8"))
    return {
        alias.name: str(statement.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_what_the_type_checker_sees_is_what_is_exported() -> None:
    assert sorted(homes()) == [name for name in aforesaid.__all__ if not name.startswith("__")]
    assert dir(aforesaid) == aforesaid.__all__


@pytest.mark.parametrize(("name", "home"), homes().items())
def test_each_name_is_the_one_of_its_module(name: str, home: str) -> None:
    module = __import__(home, fromlist=[name])
    assert getattr(aforesaid, name) is getattr(module, name)


def test_the_version_is_a_release() -> None:
    assert [part.isdigit() for part in str(aforesaid.__version__).split(".")[:2]] == [True, True]


@pytest.mark.parametrize("name", ["client", "_nothing", "translated", "TYPE_CHECKING"])
def test_other_names_are_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(aforesaid, name)


def modules_after(program: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(told.stdout.split("\n")[-2].split())


HEAVY = {"connectrpc", "protobuf", "pyqwest", "protovalidate", "rich", "aforesaid._client"}


@pytest.mark.parametrize(
    "program",
    [
        "import aforesaid",
        "from aforesaid.model import Turn",
        "from aforesaid import InvalidArgument, SearchPage, Config",
        "from aforesaid.cli import run\nassert run(['--help']) == run(['search', '--help']) == run(['import', '--help']) == 0",
    ],
)
def test_what_does_not_call_loads_no_wire(program: str) -> None:
    assert modules_after(program) & HEAVY == set()


@pytest.mark.parametrize("name", ["Client", "AsyncClient"])
def test_what_calls_loads_it(name: str) -> None:
    assert modules_after(f"from aforesaid import {name}") >= HEAVY - {"rich"}


# The two clients

METHODS = [name for name, value in vars(_client._Service).items() if isinstance(value, _client._Asks | _client._Lists)]


def test_each_call_is_a_method_of_its_name() -> None:
    calls = {name for name, value in vars(_calls).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert set(METHODS) == calls - {"dataclass"}


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_text_and_the_signature_of_their_call(name: str) -> None:
    call = getattr(_calls, name)
    for client in (aforesaid.Client(LOCAL, ""), aforesaid.AsyncClient(LOCAL, "")):
        method = getattr(client, name)
        assert (method.__name__, method.__doc__) == (name, call.__doc__)
        assert inspect.signature(method) == inspect.signature(call)
    assert getattr(aforesaid.Client, name) is getattr(aforesaid.AsyncClient, name) is call


def test_what_is_awaited_is_a_coroutine_function() -> None:
    client = aforesaid.AsyncClient(LOCAL, "")
    assert inspect.iscoroutinefunction(client.agent)
    assert not inspect.iscoroutinefunction(client.search)


@pytest.mark.parametrize("kind", [aforesaid.Client, aforesaid.AsyncClient])
def test_help_tells_of_every_method(kind: type) -> None:
    told = pydoc.plain(pydoc.render_doc(kind))
    for name in (*METHODS, "import_turns"):
        assert f" {name}(" in told
    assert "`connections`" in told
