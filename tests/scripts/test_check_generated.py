"""What the check of the generated code finds: files that are stale, missing or nobody's."""

from __future__ import annotations

from pathlib import Path

from scripts.check_generated import differences


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_each_difference_is_named(tmp_path: Path) -> None:
    by_hand = {"__init__.py": "", "v1/__init__.py": "", "__pycache__/x.pyc": ""}
    committed = write(tmp_path / "committed", by_hand | {"v1/same.py": "1", "v1/stale.py": "1", "v1/orphan.py": "1"})
    fresh = write(tmp_path / "fresh", {"v1/same.py": "1", "v1/stale.py": "2", "v1/new.py": "1"})
    assert list(differences(committed, fresh)) == [
        "client/aforesaid/agent/v1/new.py is missing",
        "client/aforesaid/agent/v1/orphan.py comes from no proto file",
        "client/aforesaid/agent/v1/stale.py is not up to date",
    ]


def test_the_same_folders_differ_in_nothing(tmp_path: Path) -> None:
    files = {"v1/a.py": "1"}
    assert list(differences(write(tmp_path / "committed", files), write(tmp_path / "fresh", files))) == []
