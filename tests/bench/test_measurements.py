"""The measurements run from start to end against the service of this checkout, small, and leave their section behind."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from bench import indexing, kinds, searching, storing, substring
from bench.corpus import Corpus
from bench.grep import installed
from bench.letters import Kind as LettersKind
from bench.ours import Service, ServiceError
from bench.queries import Kind
from scripts.postgresql import Cluster


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


def test_letters_are_compared(tmp_path: Path) -> None:
    results = tmp_path / "substring.md"
    substring.main(["--turns", "400", "--queries", "1", "--rounds", "1", "--results", str(results)])
    told = results.read_text(encoding="utf-8")
    program = "ripgrep" if installed() == "rg" else "grep"
    assert f"| search | aforesaid | its core | FTS5 trigrams | {program} |" in told
    cells = r" \| ".join([r"[\d.e+-]+ / [\d.e+-]+"] * 8)
    for kind in LettersKind:
        assert len(re.findall(rf"^\| {re.escape(kind.value)} \| {cells} \|$", told, re.MULTILINE)) == 2, kind
    assert re.search(r"^- taken in: CPU [\d.]+ s \(all of aforesaid\) and [\d.]+ s", told, re.MULTILINE)
    assert [file.name for file in tmp_path.iterdir()] == ["substring.md"]


def test_kinds_of_parts_are_compared(tmp_path: Path) -> None:
    results = tmp_path / "kinds.md"
    kinds.main(["--turns", "400", "--queries", "1", "--rounds", "1", "--results", str(results)])
    told = results.read_text(encoding="utf-8")
    share = re.search(r"^- of two kinds: \d+ turns, (\d+)%$", told, re.MULTILINE)
    assert share
    assert 10 < int(share[1]) < 40
    head = r"^\| search \| any kind \| any kind, of turns of one kind \| text \| calls and results \|"
    assert len(re.findall(head, told, re.MULTILINE)) == 2
    for row in ("CPU, s", "wall time, s", "index on disk, MB", "index over text"):
        assert re.search(rf"^\| {row} \| [\d.,e+]+ \| [\d.,e+]+ \| [\d.e+-]+ \|$", told, re.MULTILINE), row


def test_the_pieces_of_a_turn_are_its_text() -> None:
    for turn in Corpus(1, 300):
        pieces = kinds.pieces(turn)
        assert " ".join(text for _, text in pieces) == turn.text
        assert len({kind for kind, _ in pieces}) == len(pieces)


def test_stores_are_compared(tmp_path: Path, postgres_cluster: Cluster) -> None:
    del postgres_cluster  # where there is none, nothing can be measured
    results = tmp_path / "storing.md"
    storing.main(["--turns", "150", "--appends", "8", "--queries", "1", "--rounds", "1", "--results", str(results)])
    told = results.read_text(encoding="utf-8")
    assert "|  | SQLite | PostgreSQL | PostgreSQL ÷ SQLite |" in told
    for row in ("turns imported a second", "turns appended a second, 8 writers", "bare commits a second, 1 writer"):
        assert re.search(rf"^\| {row} \| [\d.,e+]+ \| [\d.,e+]+ \| [\d.e+-]+ \|$", told, re.MULTILINE), row
    for row in (
        "a turn appended",
        "the end of the log asked for",
        "a search for a common word",
        "a turn found that was just written",
    ):
        cells = r" \| ".join([r"[\d.e+-]+ / [\d.e+-]+"] * 3)
        assert re.search(rf"^\| {row}: wall, ms \| {cells} \|$", told, re.MULTILINE), row
    assert re.search(r"^\| the same on another node: wall, ms \|  \| [\d.e+-]+ / [\d.e+-]+ \|  \|$", told, re.MULTILINE)


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
