"""The throwaway cluster goes with whoever started it, however that one ends, and leaves no folder where it could tidy up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from scripts import postgresql
from scripts.postgresql import Cluster, NoPostgreSQL, programs
from scripts.running_server import ROOT
from tests.faults.serving import wait_until

SECONDS = 60


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_it_ends_with_its_process(by: signal.Signals, code: int, postgres_cluster: Cluster, open_folder: Path) -> None:
    del postgres_cluster  # tells where there is no PostgreSQL
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.postgresql"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(open_folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            assert not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = current_user AND rolsuper").fetchone()
        (folder,) = open_folder.iterdir()
        assert (folder / "data" / "postmaster.pid").exists()
        process.send_signal(by)
        assert process.wait(SECONDS) == code
        wait_until(lambda: not (folder / "data" / "postmaster.pid").exists())
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        assert folder.exists() == (by == signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """An empty folder that another user reaches, which pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="aforesaid-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgresql, "OF_DEBIAN", tmp_path)
    with pytest.raises(NoPostgreSQL, match="on Debian they are in the package `postgresql`"):
        programs()
