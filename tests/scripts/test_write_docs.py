"""scripts/write_docs.py: the pages that are derived from the code are up to date, and a page that is not would be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import write_docs
from scripts.write_docs import CONFIGURATION, MONITORING, NoGroup, configuration, main, metrics, monitoring


@pytest.mark.parametrize(
    ("page", "written"), [(CONFIGURATION, configuration), (MONITORING, lambda: monitoring(MONITORING.read_text()))]
)
def test_the_pages_are_up_to_date(page: Path, written: object) -> None:
    assert callable(written)
    assert page.read_text("utf-8") == written(), "run `make docs`"


def test_a_page_that_is_not_up_to_date_is_named_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, page in (("CONFIGURATION", CONFIGURATION), ("MONITORING", MONITORING)):
        copy = tmp_path / page.name
        copy.write_text(
            re.sub(r"^\| `(AFORESAID_PORT|aforesaid_calls_total)`.*\n", "", page.read_text("utf-8"), flags=re.MULTILINE)
        )
        monkeypatch.setattr(write_docs, name, copy)
    monkeypatch.setattr(write_docs, "ROOT", tmp_path)
    assert main(["--check"]) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" is not up to date")[0] for line in told] == [
        "write_docs: configuration.md",
        "write_docs: monitoring.md",
    ]
    assert main([]) == 0
    assert (tmp_path / "configuration.md").read_text() == CONFIGURATION.read_text()
    assert (tmp_path / "monitoring.md").read_text() == MONITORING.read_text()
    assert main(["--check"]) == 0


def test_a_setting_in_no_group_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (first, names), *others = write_docs.GROUPS
    monkeypatch.setattr(write_docs, "GROUPS", ((first, (*names[1:], "gone")), *others))
    with pytest.raises(NoGroup, match=rf"differ in gone, {names[0]}$"):
        configuration()


def test_a_page_without_its_marks_is_told() -> None:
    with pytest.raises(ValueError, match=r"the lines .* are not there"):
        monitoring("# Monitoring\n")


def test_every_metric_that_the_page_speaks_of_is_there() -> None:
    """In alerts and sentences; a name may go without what its kind adds to it."""
    known = {name.strip("`") for name, *_ in metrics()}
    named = set(re.findall(r"\baforesaid_[a-z_]+\b", MONITORING.read_text("utf-8")))
    deploying = set(re.findall(r"\baforesaid_[a-z_]+\b", (MONITORING.parent / "deploying.md").read_text("utf-8")))
    assert sorted((named | deploying) - known) == []


def test_the_labels_in_the_page_are_those_of_a_scrape() -> None:
    rows = {name.strip("`"): (kind, labels) for name, kind, labels, _ in metrics()}
    assert rows["aforesaid_calls_total"] == ("counter", "`method`, `door`, `code`")
    assert rows["aforesaid_call_duration_seconds"] == ("histogram", "`method`, `door`")
    assert all(
        not labels
        for name, (_, labels) in rows.items()
        if name.startswith(("aforesaid_index", "aforesaid_store", "aforesaid_audit"))
    )
