"""The public face of the client: `aforesaid.__all__` is sorted, complete, and says nothing that is not there."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

import aforesaid

# Where the client's users meet values and errors; what these modules define in public is for them.
HOMES = ("aforesaid.model", "aforesaid._errors", "aforesaid._replies", "aforesaid._client")


def public_classes(module: ModuleType) -> set[str]:
    """The classes without a leading underscore that a module defines itself."""
    defined = {name for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__}
    return {name for name in defined if not name.startswith("_")}


def names_for_type_checkers(source: str) -> set[str]:
    """The public names that a module imports, even if only for type checkers."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports if (node.module or "").startswith("aforesaid.") for alias in node.names}


def test_all_is_sorted_without_repeats() -> None:
    assert aforesaid.__all__ == sorted(set(aforesaid.__all__))


def test_every_name_of_all_is_there() -> None:
    assert [name for name in aforesaid.__all__ if getattr(aforesaid, name, None) is None] == []


def test_type_checkers_see_the_same_names() -> None:
    assert names_for_type_checkers(Path(str(aforesaid.__file__)).read_text("utf-8")) == set(aforesaid.__all__) - {"__version__"}


@pytest.mark.parametrize("home", HOMES)
def test_every_public_class_is_exported(home: str) -> None:
    assert sorted(public_classes(importlib.import_module(home)) - set(aforesaid.__all__)) == []


def test_everything_exported_is_documented() -> None:
    classes = [name for name in aforesaid.__all__ if isinstance(getattr(aforesaid, name), type)]
    assert [name for name in classes if not vars(getattr(aforesaid, name)).get("__doc__")] == []


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'transcripts'"):
        _ = aforesaid.transcripts


def test_dir_lists_what_all_does() -> None:
    assert set(dir(aforesaid)) >= set(aforesaid.__all__)
