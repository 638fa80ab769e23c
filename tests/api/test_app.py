"""The process: flags and environment, data folder, ports, import at the start, ready file; and that it says why it cannot begin."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from aforesaid_server.__main__ import commands, main
from aforesaid_server.api.files import FileTally
from aforesaid_server.api.health import Readiness
from aforesaid_server.app import serve
from aforesaid_server.commands import read_settings
from aforesaid_server.doors import Doors, Signals, listen
from aforesaid_server.errors import StartError, Unavailable
from aforesaid_server.folder import LOCK, data_folder
from aforesaid_server.house import House, build_core
from aforesaid_server.settings import Settings
from scripts.running_server import EXAMPLES, ROOT, RunningServer
from tests.api.doors import SEARCH, ConnectDoor, wait_until_said
from tests.api.fakes import FakeCore
from tests.conftest import StartServer


def _refused(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Runs the command in this process; it must end with 2. Returns what it said."""
    outcome = CliRunner(env=dict(environment or {})).invoke(commands, arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    return outcome.stderr


@pytest.fixture
def unused() -> Iterator[int]:
    """A port at which nothing listens."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[Signals]:
    """The signals of a service in this process, which hears none: a test sets them."""
    made: list[Signals] = []

    def hear_none(self: Signals) -> None:
        made.append(self)

    monkeypatch.setattr(Signals, "listen", hear_none)
    return made


def _log(running: RunningServer) -> Path:
    assert running.log is not None
    return running.log


# -- settings


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.org", ""])
def test_hosts_that_are_not_this_machine_alone(host: str, tmp_path: Path) -> None:
    told = _refused("serve", "--data", str(tmp_path / "data"), "--host", host)
    assert told == f"aforesaid-server: host {host} is not a loopback address: without tokens the service is for this machine only\n"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "99999"], "port: input should be less than or equal to 65535: 99999"),
        (["--port", "x"], "port: input should be a valid integer, unable to parse string as an integer: x"),
        (["--drain-seconds", "0"], "drain-seconds: input should be greater than 0: 0"),
        (["--port", "8788"], "both ports are the same: 8788"),
        (["--log-level", "loud", "--port", "0"], "log level loud is none of debug, info, warning, error"),
    ],
)
def test_settings_that_cannot_be(arguments: Sequence[str], told: str, tmp_path: Path) -> None:
    assert _refused("serve", "--data", str(tmp_path / "data"), *arguments) == f"aforesaid-server: {told}\n"


def test_a_language_without_a_stemmer_is_told_with_those_that_have_one(tmp_path: Path) -> None:
    told = _refused("serve", "--data", str(tmp_path / "data"), "--language", "klingon")
    assert re.fullmatch(
        r"aforesaid-server: language klingon has no Snowball stemmer; there are (\w+, )*english, (\w+, )*german, .*\n", told
    )
    assert not (tmp_path / "data").exists()


def test_both_ports_may_be_free_ones() -> None:
    assert read_settings({"port": "0", "grpc_port": "0"}).port == 0


def test_the_version() -> None:
    outcome = CliRunner().invoke(commands, ["--version"])
    assert (outcome.exit_code, outcome.stdout) == (0, f"aforesaid-server {version('aforesaid')}\n")


def test_every_wrong_setting_is_told() -> None:
    told = _refused("serve", "--port", "-1", "--grpc-port", "70000", "--host", "0.0.0.0").splitlines()
    assert len(told) == 3


def test_lists_in_the_environment_that_are_no_json() -> None:
    told = "aforesaid-server: AFORESAID_READERS: must be a list as JSON, such as '[\"reviewer\"]': reviewer\n"
    assert _refused("serve", environment={"AFORESAID_READERS": "reviewer"}) == told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serv"], "no such command 'serv'. Did you mean 'serve'?; try 'aforesaid-server --help'"),
        (["backup"], "missing argument 'TARGET'; try 'aforesaid-server backup --help'"),
        (
            ["check", "--wait", "x"],
            "invalid value for '--wait': 'x' is not a valid float range; try 'aforesaid-server check --help'",
        ),
        (["--data", "x", "serve"], "no such option '--data'; try 'aforesaid-server --help'"),
    ],
)
def test_what_is_no_command_line_is_one_line(
    arguments: Sequence[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["aforesaid-server", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsys.readouterr()) == (2, "", f"aforesaid-server: {told}\n")


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["--help"], 0), (["--version"], 0)])
def test_the_program_ends_with_the_commands_code(arguments: Sequence[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["aforesaid-server", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_health_says_why_nobody_answers(unused: int) -> None:
    outcome = CliRunner(env={"AFORESAID_PORT": str(unused)}).invoke(commands, ["health"])
    assert (outcome.exit_code, outcome.stderr) == (1, f"aforesaid-server: port {unused}: connection refused\n")


def test_flags_go_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_PORT", "1111")
    monkeypatch.setenv("AFORESAID_GRPC_PORT", "2222")
    monkeypatch.setenv("AFORESAID_READERS", '["reviewer"]')
    settings = read_settings({"port": "3333"})
    assert (settings.port, settings.grpc_port, settings.readers) == (3333, 2222, frozenset({"reviewer"}))


def test_each_setting_has_a_flag() -> None:
    told = CliRunner().invoke(commands, ["serve", "--help"]).stdout
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in told
        assert f"AFORESAID_{name.upper()}" in told.replace("\n", "").replace(" ", "")


# -- the data folder


def test_a_secret_that_is_gone_is_told(tmp_path: Path) -> None:
    build_core(Settings(data=tmp_path)).close()
    (tmp_path / "secret").unlink()
    with capture_logs() as logged:
        build_core(Settings(data=tmp_path)).close()
        build_core(Settings(data=tmp_path)).close()
    assert [line["event"] for line in logged if line["log_level"] == "warning"] == ["secret was gone, made anew"]


def test_the_data_folder_is_its_owners(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    with data_folder(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / LOCK).read_text() == f"{os.getpid()}\n"


def test_a_data_folder_of_ours_is_closed_to_others_again(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with data_folder(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_of_other_things_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    tmp_path.chmod(0o755)
    with data_folder(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_two_servers_do_not_share_a_data_folder(tmp_path: Path) -> None:
    with data_folder(tmp_path):
        with (
            pytest.raises(StartError, match=rf"^data folder .*: another server uses it \(process {os.getpid()}\)$"),
            data_folder(tmp_path),
        ):
            pass
        with pytest.raises(StartError, match="another server uses it"), data_folder(tmp_path):
            pass
    with data_folder(tmp_path):
        pass


def test_a_data_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match=r"^data folder .*file: file exists$"), data_folder(tmp_path / "file"):
        pass


# -- the ports


def test_sockets_name_their_protocol() -> None:
    """asyncio turns the delay of small packets off only then: every answer would come 40 ms late."""
    sockets = listen("127.0.0.1", 0)
    assert [one.proto for one in sockets] == [socket.IPPROTO_TCP]
    sockets[0].close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_all_addresses_of_a_host_are_opened_on_one_port(host: str) -> None:
    try:
        sockets = listen(host, 0)
    except StartError as error:
        if ":" in host:
            pytest.skip(f"no IPv6 here: {error}")
        raise
    try:
        assert len({one.getsockname()[1] for one in sockets}) == 1
        for one in sockets:
            with socket.create_connection(one.getsockname()[:2], timeout=5):
                pass
    finally:
        for one in sockets:
            one.close()


def test_a_port_in_use() -> None:
    (taken,) = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    with pytest.raises(StartError, match=rf"^port {port} of 127\.0\.0\.1: address already in use$"):
        listen("127.0.0.1", port)
    taken.close()


def test_a_host_that_is_unknown() -> None:
    with pytest.raises(StartError, match=r"^host nothing\.invalid: "):
        listen("nothing.invalid", 0)


@pytest.mark.parametrize("flag", ["--port", "--grpc-port"])
def test_a_port_in_use_ends_the_program_with_2(flag: str, tmp_path: Path) -> None:
    (taken,) = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    ports = {"--port": "0", "--grpc-port": "0"} | {flag: str(port)}
    command = [sys.executable, "-m", "aforesaid_server", "serve", "--data", str(tmp_path / "data")]
    for name, value in ports.items():
        command += [name, value]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    taken.close()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"aforesaid-server: port {port} of 127.0.0.1: address already in use\n"


def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    def build(_: Settings) -> House:
        raise Unavailable("the store cannot be made")

    with pytest.raises(StartError, match=r"^the store cannot be made$"):
        serve(Settings(data=tmp_path / "data", port=0, grpc_port=0), build=build)
    with data_folder(tmp_path / "data"):
        pass  # It was let go.


def test_an_import_that_cannot_go_on_ends_the_service(tmp_path: Path, core: FakeCore, signals: list[Signals]) -> None:
    (tmp_path / "one.jsonl").write_text('{"role": "user", "content": "squeamish"}\n')

    def fail(*_: object) -> None:
        raise Unavailable("the store cannot answer")

    core.take = fail
    settings = Settings(data=tmp_path / "data", port=0, grpc_port=0)
    with pytest.raises(StartError, match=r"^--import: the store cannot answer$"):
        serve(settings, [tmp_path / "one.jsonl"], tmp_path / "ready", build=lambda _: core.house())
    assert core.closed
    assert len(signals) == 1
    assert not (tmp_path / "ready").exists()


def test_something_unforeseen_at_the_start_has_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def build(_: Settings) -> House:
        raise ValueError("squeamish")

    with pytest.raises(StartError) as raised:
        serve(Settings(data=tmp_path / "data", port=0, grpc_port=0), build=build)
    told = capfd.readouterr().err
    assert '"ValueError"' in told
    assert "squeamish" not in f"{told} {raised.value}"


def test_a_path_to_import_that_is_not_there(tmp_path: Path) -> None:
    told = _refused(
        "serve", "--data", str(tmp_path / "data"), "--import", str(tmp_path / "nothing"), "--ready-file", str(tmp_path / "ready")
    )
    assert told.startswith("aforesaid-server: --import ")
    assert "nothing" in told
    assert not (tmp_path / "data").exists()


# -- from start to end


def test_an_import_at_the_start_is_searched_and_told(start_server: StartServer) -> None:
    """And again, into the same data folder, it changes nothing; every line is taken or its reason told."""
    first = start_server(imports=[EXAMPLES])
    door = ConnectDoor(first.url)
    assert door.call(SEARCH, {"query": "charged twice"}).body["matches"]
    door.close()
    first.stop()
    again = start_server(data=first.data, imports=[EXAMPLES])
    lines = [line for line in again.told().splitlines() if not line.startswith("{")]
    assert ": 0 turns added, 0 replaced, " in lines[0]
    assert any(line.startswith("  lines skipped: ") for line in lines)
    wait_until_said("Try:\n  curl", _log(again), again.process)
    lines = [line for line in again.told().splitlines() if not line.startswith("{")]
    assert lines[-1] == f"  curl -s {again.url}/{SEARCH} -H 'Content-Type: application/json' -d '{{\"query\": \"test\"}}'"
    door = ConnectDoor(again.url)
    assert door.call(SEARCH, {"query": "test"}).body["matches"]
    door.close()
    logged = [json.loads(line) for line in again.told().splitlines() if line.startswith("{")]
    assert {line["level"] for line in logged} <= {"info", "warning"}
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in [first.data, *first.data.rglob("*")]} == {0}


def test_an_import_that_took_nothing_is_told_instead_of_what_to_try(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    running = start_server(imports=[tmp_path / "empty"])
    wait_until_said("Nothing was imported: ", _log(running), running.process)
    assert "Try:" not in running.told()


def test_what_to_try_is_told_once_searches_are_answered(
    tmp_path: Path, core: FakeCore, signals: list[Signals], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    told_before: list[str] = []

    def readiness() -> Readiness:
        told_before.append(capfd.readouterr().out)
        return Readiness(len(told_before) == 3, "an index is built")

    def invite_and_stop(doors: Doors, tally: FileTally | None) -> None:
        invite(doors, tally)
        signals[0].first.set()

    invite = Doors.invite
    monkeypatch.setattr(Doors, "invite", invite_and_stop)
    house = replace(core.house(), readiness=readiness)
    serve(Settings(data=tmp_path / "data", port=0, grpc_port=0), ready_file=tmp_path / "ready", build=lambda _: house)
    assert "Connect and gRPC-Web on " in told_before[0]
    assert "Try:" not in "".join(told_before)
    assert capfd.readouterr().out.startswith("Try:\n  curl -s http://127.0.0.1:")


def test_a_service_that_is_told_to_stop_before_invites_nobody(
    tmp_path: Path, core: FakeCore, signals: list[Signals], capfd: pytest.CaptureFixture[str]
) -> None:
    def readiness() -> Readiness:
        signals[0].first.set()
        return Readiness(False, "an index is built")

    house = replace(core.house(), readiness=readiness)
    serve(Settings(data=tmp_path / "data", port=0, grpc_port=0), ready_file=tmp_path / "ready", build=lambda _: house)
    assert (tmp_path / "ready").exists()
    assert "Try:" not in capfd.readouterr().out


def test_the_ready_file_says_where(start_server: StartServer) -> None:
    running = start_server()
    door = ConnectDoor(running.url)
    assert door.http.get("/readyz").json() == {"ready": True}
    door.close()
    host, _, port = running.grpc.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5):
        pass
    assert running.data.joinpath(LOCK).read_text() == f"{running.process.pid}\n"


def test_after_a_power_cut_it_begins_again(start_server: StartServer) -> None:
    running = start_server()
    running.kill()
    again = start_server(data=running.data)
    assert again.data == running.data


def test_a_signal_during_the_import_ends_it(tmp_path: Path) -> None:
    """With 0, in good order, and without a ready file."""
    lines = "".join(json.dumps({"role": "user", "content": f"turn {n}", "conversation_id": "c"}) + "\n" for n in range(200_000))
    (tmp_path / "many.jsonl").write_text(lines)
    ready, log = tmp_path / "ready", tmp_path / "log"
    command = [
        sys.executable,
        "-m",
        "aforesaid_server",
        "serve",
        "--data",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--grpc-port",
        "0",
    ]
    command += ["--import", str(tmp_path / "many.jsonl"), "--ready-file", str(ready)]
    with log.open("wb") as output, subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output) as process:
        wait_until_said('"serving"', log, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    assert not ready.exists()
    told = log.read_text()
    assert '"stopped"' in told
    assert "Traceback" not in told
