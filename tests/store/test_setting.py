"""The setting `store` and the commands that go by it: to PostgreSQL as to SQLite, and without ever telling the address."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine

from aforesaid_server.__main__ import commands
from aforesaid_server.settings import Folder, Settings
from aforesaid_server.store import AgentKey, Append
from aforesaid_server.store.opening import open_store
from aforesaid_server.store.postgres import address_of, open_postgres, place_of
from scripts.running_server import ROOT
from tests.store.plain import said

PASSWORD = "hunter2-7Gq"
BAD = f"postgresql://aforesaid:{PASSWORD}@127.0.0.1:1/talks"


@pytest.fixture(autouse=True)
def no_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFORESAID_STORE", raising=False)
    monkeypatch.delenv("AFORESAID_DATA", raising=False)


def told(*words: str | Path) -> tuple[int, str, str]:
    """Runs a command in this process: its exit code and what it said."""
    outcome = CliRunner().invoke(commands, [str(word) for word in words])
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    return outcome.exit_code, outcome.stdout, outcome.stderr


def test_it_chooses_the_store(tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(Folder(data=tmp_path))) as store:
        assert not store.shared
    assert (tmp_path / "store.sqlite3").exists()
    monkeypatch.setenv("AFORESAID_STORE", postgres)
    with closing(open_store(Settings(data=tmp_path / "none"))) as store:
        assert store.shared
    assert not (tmp_path / "none").exists()


def test_the_addresses_of_the_docs() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    (in_file,) = re.findall(r"^AFORESAID_STORE='(.*)'$", page, re.MULTILINE)
    address = address_of(in_file)
    assert (address.password, address.host, address.database) == ("the@password", "db.example.org", "talks")
    assert address.query == {"sslmode": "verify-full", "sslrootcert": "system"}
    (by_socket,) = re.findall(r"`(postgresql:///.*?)`", page)
    assert place_of(address_of(by_socket)) == "the database talks at /run/postgresql"


def test_the_address_is_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AFORESAID_STORE", BAD)
    shown = f"{Settings(data=tmp_path)!r} {Settings(data=tmp_path)} {Settings(data=tmp_path).model_dump_json()} {Folder()!r}"
    shown += "".join(told(*words, "--help")[1] for words in (["serve"], ["token", "list"], ["check"], ["backup"]))
    assert PASSWORD not in shown


@pytest.mark.parametrize(
    ("words", "by_flag", "reason"),
    [
        (["token", "new", "--user", "ada"], True, "cannot be opened: .*Connection refused"),
        (["grants"], False, "cannot be opened: .*Connection refused"),
        (["grants", "list"], True, "cannot be opened: .*Connection refused"),
        (["serve", "--port=0", "--grpc-port=0"], False, "cannot be opened: .*Connection refused"),
        (["backup", "copy"], False, "copy it with pg_dump"),
        (["restore", "copy"], True, "with psql"),
    ],
)
def test_a_command_that_cannot_reach_it(tmp_path: Path, words: list[str], by_flag: bool, reason: str) -> None:
    """As a process of its own: the whole of what it says is looked at."""
    command = [sys.executable, "-m", "aforesaid_server", *words, "--data", str(tmp_path / "data")]
    command += ["--store", BAD] if by_flag else []
    env = {} if by_flag else {"AFORESAID_STORE": BAD}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2
    assert ended.stdout == ""
    *_, last = ended.stderr.splitlines()
    assert last.startswith("aforesaid-server: the store ")
    assert re.search(reason, last), last
    assert PASSWORD not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("words", [["token", "list"], ["grants", "revoke", "1"], ["check"], ["serve", "--port=0", "--grpc-port=0"]])
def test_what_is_no_address_is_refused(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "secret").write_bytes(bytes(32))
    code, out, err = told(*words, "--data", tmp_path, "--store", f"mysql://u:{PASSWORD}@h/d")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("aforesaid-server: store: mysql:// is not supported: postgresql:// is")
    assert PASSWORD not in err


def test_a_flag_of_the_group_stands_behind_its_command(tmp_path: Path) -> None:
    assert told("grants", "--store", BAD, "list") == (2, "", "aforesaid-server: --store: stands after list\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder of a node."""
    return tmp_path / "data"


def test_tokens_and_grants(folder: Path, tmp_path: Path, postgres: str) -> None:
    where = "--data", folder, "--store", postgres
    code, token, err = told("token", "new", "--user", "ada", *where)
    assert (code, err.splitlines()[0]) == (0, f"made a new data folder: {folder}")
    assert sorted(one.name for one in folder.iterdir()) == ["secret"]
    (listed,) = [json.loads(line) for line in told("token", "list", "--json", *where)[1].splitlines()]
    assert (listed["id"], listed["name"], listed["state"]) == (token.split("_")[1], "ada", "good")
    with closing(open_postgres(postgres)) as store:
        for agent_id in ("a", "b"):
            store.append(Append(AgentKey(agent_id), "c", [said("x")]), now=1)
    assert told("grant", "a", "--read", "b", "--until", "1d", "--why", "x", *where)[0] == 0
    assert "a" in told("grants", *where)[1]
    # A folder with another secret is another deployment's: its tokens would open nothing here.
    code, out, err = told("token", "new", "--user", "bob", "--data", tmp_path / "other", "--store", postgres)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].endswith("holds no secret: copy that of another node, which serves the same store")
    (tmp_path / "other" / "secret").write_bytes(bytes(32))
    code, out, err = told("token", "new", "--user", "bob", "--data", tmp_path / "other", "--store", postgres)
    assert (code, out) == (2, "")
    assert err.endswith("its secret is not that of the other nodes, which serve the same store: copy theirs\n")


def test_check(folder: Path, postgres: str) -> None:
    where = "--data", folder, "--store", postgres
    assert told("token", "new", "--user", "ada", *where)[0] == 0
    with closing(open_postgres(postgres)) as store:
        store.append(Append(AgentKey("a"), "c", [said("x")] * 3), now=1)
    code, out, err = told("check", *where)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"ok      {name}" for name in ("files", "store", "tables", "audit log", "index")
    ]
    assert lines[0] == "ok      files: secret is there, its owner's alone"
    assert lines[1].startswith("ok      store: the database d")
    assert lines[1].endswith(", 3 turns")
    _harm(postgres, "delete from changes where number = 3")
    code, out, _ = told("check", *where)
    assert (code, out.splitlines()[-1]) == (1, "FAILED  store: expected a log that ends at change 3, came its last change is 2")
    _harm(postgres, "drop table alembic_version")
    assert told("check", *where)[0] == 1
    code, out, _ = told("check", "--data", folder, "--store", BAD)
    assert code == 1
    assert out.splitlines()[-1].startswith("FAILED  store: expected a database that answers, with a store in it, came")
    assert PASSWORD not in out


def _harm(url: str, statement: str) -> None:
    engine = create_engine(address_of(url))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
