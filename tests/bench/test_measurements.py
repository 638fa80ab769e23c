"""Both measurements run from start to end against the service of this checkout, small, and leave their section behind."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from bench import indexing, searching
from bench.corpus import Corpus
from bench.ours import Service, ServiceError
from bench.queries import Kind


@pytest.fixture(autouse=True)
def _temporary_files_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_searches_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "searching.md"
    searching.main(["--turns", "600", "--seed", "1", "--queries", "1", "--rounds", "2", "--results", str(results)])
    told = results.read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in told
    assert "version 1, seed 1, 600 turns" in told
    assert "| search | aforesaid | its core | FTS5 | FTS5 ÷ aforesaid | FTS5 ÷ its core |" in told
    cells = r" \| ".join([r"[\d.e+-]+ / [\d.e+-]+"] * 5)
    for kind in Kind:
        rows = re.findall(rf"^\| {re.escape(kind.value)} \| {cells} \|$", told, re.MULTILINE)
        assert len(rows) == 2, kind
    # Nothing stays behind but the results.
    assert [file.name for file in tmp_path.iterdir()] == ["searching.md"]


def test_taking_in_is_compared(tmp_path: Path) -> None:
    results = tmp_path / "indexing.md"
    indexing.main(["--turns", "400", "--results", str(results)])
    told = results.read_text(encoding="utf-8")
    assert "400 turns, " in told
    for row in ("CPU, s", "wall time, s", "turns a second of CPU", "size on disk, MB", "size over text"):
        assert re.search(rf"^\| {row} \| [\d.,e+]+ \| [\d.,e+]+ \| [\d.e+-]+ \|$", told, re.MULTILINE), row
    peak = re.search(r"peak memory of the service: ([\d,]+) MB", told)
    assert peak
    assert 30 < int(peak[1].replace(",", "")) < 1_000


def test_a_service_that_cannot_start_tells_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(ServiceError, match=r"did not start: [\s\S]*data"), Service(tmp_path):
        pass


def test_a_refused_search_is_no_search(tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        told = service.import_turns(Corpus(4, 30))
        assert (told.turns_added, told.turns_unchanged) == (30, 0)
        assert service.import_turns(Corpus(4, 30)).turns_unchanged == 30
        service.settle()
        assert service.count("xylophyte") == 3
        assert service.clock()() > 0
        with pytest.raises(ServiceError, match="answered 400"):
            service.search("???")
