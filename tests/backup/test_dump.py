"""A store in PostgreSQL is copied by PostgreSQL's own programs: what docs/backup.md says of it, done."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from psycopg import sql

from scripts.postgresql import OWNER, Cluster
from tests.api.callers import VERIFY, Caller, hits, new, new_word, ok
from tests.api.doors import ConnectDoor
from tests.conftest import StartServer, missing
from tests.faults.serving import readyz, wait_until


def test_a_dump_can_be_served(
    start_server: StartServer, postgres: str, postgres_cluster: Cluster, tmp_path: Path, empty_database: str
) -> None:
    """Copied while it is served, put into a new database, and served from there with the secret of the old folder."""
    word, agent, reader = new_word(), new("agent"), new("reader")
    first = start_server(data=tmp_path / "first", settings={"AFORESAID_STORE": postgres})
    with closing(ConnectDoor(first.url)) as door:
        user = Caller(door)
        wait_until(lambda: readyz(door.http)[0] == 200)
        user.say("talk", f"keep {word}\x00\x01", agent_id=agent)
        user.make(reader, role="reviewer")
        ok(user.agent(reader).search(word, agentId=agent))
        copy_into(postgres_cluster, postgres, empty_database)
        user.say("talk", "said after the copy", agent_id=agent)
    (tmp_path / "second").mkdir()
    shutil.copy(tmp_path / "first" / "secret", tmp_path / "second" / "secret")
    second = start_server(data=tmp_path / "second", settings={"AFORESAID_STORE": empty_database})
    with closing(ConnectDoor(second.url)) as door:
        user = Caller(door)
        wait_until(lambda: readyz(door.http)[0] == 200)
        assert [hit["snippet"] for hit in hits(ok(user.search(word)))] == [f"keep ⟦{word}⟧\x00\x01"]
        told = ok(user.call(VERIFY, {})).body
        assert (told["intact"], told["records"]) == (True, "1")
        user.say("talk", f"more of {word}", agent_id=agent)
        user.say("another", f"most of {word}", agent_id=new("agent"))
        ok(user.agent(reader).search(word, agentId=agent))
        assert len(hits(ok(user.search(word)))) == 3
        assert ok(user.call(VERIFY, {})).body["records"] == "2"


@pytest.fixture
def empty_database(postgres_cluster: Cluster) -> str:
    """The address of a database without a table."""
    return postgres_cluster.url(postgres_cluster.new())


def copy_into(cluster: Cluster, source: str, target: str) -> None:
    """Copies one database into another, as the page says."""
    for program in ("pg_dump", "psql"):
        if not (cluster.programs / program).exists():
            missing(f"no {program} beside the server: on Debian it is in the package `postgresql-client`")
    dump = subprocess.run(
        [cluster.programs / "pg_dump", "--no-owner", "--no-acl", source], capture_output=True, text=True, check=False
    )
    assert (dump.returncode, dump.stderr) == (0, "")
    put = [str(cluster.programs / "psql"), "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", target]
    done = subprocess.run(put, input=dump.stdout, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (owned,) = cluster.run(
        sql.SQL("SELECT bool_and(tableowner = {}) FROM pg_tables WHERE schemaname = 'public'").format(sql.Literal(OWNER)),
        target.rpartition("/")[2],
    )
    assert owned == (True,)
