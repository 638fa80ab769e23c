"""English stems agree with every pair of the reference data, one by one and all at once."""

from __future__ import annotations

import lzma
import threading
import tracemalloc
from pathlib import Path

from aforesaid_server.text.words import Analyser


def test_every_pair(shared: Path) -> None:
    lines = lzma.decompress((shared / "data/stemming/english.tsv.xz").read_bytes()).decode().splitlines()
    pairs = [line.split("\t") for line in lines if line]
    words, stems = [word for word, _ in pairs], [stem for _, stem in pairs]
    assert len(words) > 42_000
    english = Analyser("english")
    assert [(w, got, s) for w, got, s in zip(words, english.stems(words), stems, strict=True) if got != s] == []
    assert [word for word, stem in pairs[::7] if english.stems([word]) != [stem]] == []


def test_threads_do_not_disturb_each_other() -> None:
    english = Analyser()
    words = [f"{root}{ending}" for root in ("deploy", "connect", "index") for ending in ("", "s", "ed", "ing", "ion", "able")]
    expected = english.stems(words)
    found: list[list[str]] = []
    together = threading.Barrier(4)

    def stem() -> None:
        together.wait(10)
        found.extend(english.stems(words) for _ in range(300))

    threads = [threading.Thread(target=stem) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 1_200


def test_huge_words_are_stemmed_and_not_remembered() -> None:
    english = Analyser()
    english.stems([f"{'x' * 100_000}{number}ing" for number in range(3)])  # what is allocated once
    tracemalloc.start()
    try:
        for number in range(100):
            assert english.stems([f"{'y' * 100_000}{number}deploying"]) == [f"{'y' * 100_000}{number}deploy"]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2_000_000, "a hundred words of 100 kB are ten megabytes, and their stems as much"
