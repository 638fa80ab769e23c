"""What every command has in common: help, version, usage errors, no service, Ctrl-C, a reader that has seen enough."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import aforesaid
from aforesaid._config import SETTINGS
from aforesaid.cli import commands, run
from scripts.running_server import EXAMPLES
from tests.cli.conftest import SECONDS, Command, Ended, bare, command_line
from tests.client.ports import answering

COMMANDS = sorted(commands.commands)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr() == (f"aforesaid {aforesaid.__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([flag]) == 0
    told, errors = capsys.readouterr()
    assert errors == ""
    assert [line.split()[0] for line in told.partition("Commands:\n")[2].splitlines()] == COMMANDS


def test_help_waits_for_nothing_that_takes_long_to_load() -> None:
    program = "import sys; from aforesaid.cli import run; run(['--help']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], env=bare(None), capture_output=True, timeout=SECONDS, check=True)
    loaded = set(done.stdout.decode().splitlines()[-1].split())
    slow = {"connectrpc", "protobuf", "pyqwest", "rich", "aforesaid.model", "aforesaid.formats", "aforesaid._replies", "asyncio"}
    assert loaded & slow == set()


# It calls no service.
ALONE = {"completion"}


@pytest.mark.parametrize("command", [[name] for name in COMMANDS if name not in {*ALONE, "rpc"}] + [["rpc", "list-agents"]])
def test_help_of_a_command_names_every_setting_and_its_variable(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS:
        assert f"{setting.flag} {setting.placeholder}" in told
        assert f"[{setting.variable}" in told
    assert "Exit code: " in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["find", "x"], "aforesaid: no such command 'find'; try 'aforesaid --help'\n"),
        (["search"], "aforesaid: missing argument 'QUERY...'; try 'aforesaid search --help'\n"),
        (["import"], "aforesaid: missing argument 'PATH...'; try 'aforesaid import --help'\n"),
        (
            ["search", "x", "--limit", "many"],
            "aforesaid: invalid value for '--limit': 'many' is not a valid integer; try 'aforesaid search --help'\n",
        ),
        (
            ["search", "x", "--url", "example"],
            "aforesaid: url: must begin with http:// or https:// and name a host: example (--url or AFORESAID_URL)\n",
        ),
        (
            ["search", "x", "--as", "a\udc80"],
            "aforesaid: agent_id: must be UTF-8: 'a\\udc80' (--as or AFORESAID_AGENT_ID)\n",
        ),
        (
            ["search", "x", "--timeout", "0.0001"],
            "aforesaid: timeout: must be from 0.001 to 9999999 seconds: 0.0001 (--timeout or AFORESAID_TIMEOUT)\n",
        ),
        (["search", "x", "--as", ""], "aforesaid: as: is empty: without the flag it is the user who calls\n"),
        (["rpc", "list-agents", "--as", ""], "aforesaid: as: is empty: without the flag it is the user who calls\n"),
        (
            ["search", "x", "--timeout", "soon"],
            "aforesaid: timeout: must be a number of seconds: soon (--timeout or AFORESAID_TIMEOUT)\n",
        ),
        (
            ["search", "x", "--token-in-clear", "maybe"],
            "aforesaid: token_in_clear: must be yes or no: maybe (--token-in-clear or AFORESAID_TOKEN_IN_CLEAR)\n",
        ),
        (["search", "caf\udce9", "x"], "aforesaid: query: must be UTF-8: 'caf\\udce9'\n"),
        (["search", "x", "--reason", "\udce9"], "aforesaid: reason: must be UTF-8: '\\udce9'\n"),
        (["search", "x", "--agent", "\udce9"], "aforesaid: agent: must be UTF-8: '\\udce9'\n"),
        (["show", "a/\udce9:1"], "aforesaid: id: must be UTF-8: 'a/\\udce9:1'\n"),
        (["reads", "--agent", "\udce9"], "aforesaid: agent: must be UTF-8: '\\udce9'\n"),
        (["agents", "--scope", "ada"], "aforesaid: scope: must be KEY=VALUE: ada\n"),
        (["search", "x", "--scope", "a=1", "--scope", "a=2"], "aforesaid: scope: a is given twice\n"),
        (
            ["search", "x", "--since", "lately"],
            (
                "aforesaid: since: must be a duration such as 3d, a date such as 2026-03-04, or a time such as "
                "2026-03-04T10:22Z: lately\n"
            ),
        ),
        (["show", "x/y:z"], "aforesaid: id: must be AGENT/CONVERSATION:SEQ, as search prints it: x/y:z\n"),
        (["show", "x/y:1", "--around", "-1"], "aforesaid: around: must be at least 0: -1\n"),
        (
            ["show", "--arround", "a/b:1"],
            (
                "aforesaid: no such option --arround, did you mean --around? to name what begins so put -- before the id; "
                "try 'aforesaid show --help'\n"
            ),
        ),
        (["show"], "aforesaid: missing argument 'ID'; try 'aforesaid show --help'\n"),
        (
            ["search", "x", "--color", "pink"],
            (
                "aforesaid: invalid value for '--color': 'pink' is not one of 'auto', 'always', 'never'; "
                "try 'aforesaid search --help'\n"
            ),
        ),
        (["rpc", "searches"], "aforesaid: no such command 'searches'; try 'aforesaid rpc --help'\n"),
        (["search", "x", "--limit"], "aforesaid: option --limit requires an argument; try 'aforesaid search --help'\n"),
        (
            ["search", "--agnet"],
            (
                "aforesaid: no such option --agnet, did you mean --agent? to search for it put -- before the query; "
                "try 'aforesaid search --help'\n"
            ),
        ),
    ],
)
def test_what_is_typed_wrong_is_told_in_one_line(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr() == ("", told)


def test_without_a_command_help_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    told = capsys.readouterr()
    assert (told.out, "Commands:" in told.err) == ("", True)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address of this machine where nothing listens."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_search_without_a_service(nobody: str, piped: Command) -> None:
    told = f"aforesaid: cannot reach {nobody}: connection refused; `aforesaid-server serve` starts a service\n"
    assert piped("search", "x", environment={"AFORESAID_URL": nobody}) == Ended(2, "", told)


def test_an_import_without_a_service_says_no_more_than_that(nobody: str, piped: Command) -> None:
    told = f"aforesaid: cannot reach {nobody}: connection refused; `aforesaid-server serve` starts a service\n"
    assert piped("import", EXAMPLES, "--url", nobody) == Ended(2, "", told)


def test_where_no_service_could_help_none_is_named(piped: Command) -> None:
    told = "aforesaid: cannot reach http://nobody.invalid: no such host\n"
    assert piped("search", "x", "--url", "http://nobody.invalid", "--retries", "0") == Ended(2, "", told)


def test_the_end_is_at_once() -> None:
    # Python's own way out would wait for the transport's threads, or have them fail loudly.
    program = "import atexit, sys; from aforesaid.cli import main; atexit.register(print, 'late'); sys.argv = ['', 'show']; main()"
    done = subprocess.run([sys.executable, "-c", program], env=bare(None), capture_output=True, timeout=SECONDS, check=False)
    told = b"aforesaid: missing argument 'ID'; try 'aforesaid show --help'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", told)


def test_who_has_no_token_is_told_where_one_is_given(piped: Command) -> None:
    body = b'{"code": "unauthenticated", "message": "authorization: x"}'
    head = b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n"
    with answering(head + b"content-length: %d\r\n\r\n" % len(body) + body) as (url, _):
        told = "aforesaid: authorization: x; --token or AFORESAID_TOKEN gives one\n"
        assert piped("agents", "--url", url) == Ended(2, "", told)


@pytest.mark.parametrize("arguments", [("search", "x"), ("import", EXAMPLES)])
def test_the_grpc_port_is_not_the_one_to_call(arguments: tuple[str | Path, ...], grpc_target: str, piped: Command) -> None:
    url = f"http://{grpc_target}"
    told = f"aforesaid: {url} does not answer as aforesaid does: it may be the gRPC port, and the url wants the other one\n"
    assert piped(*arguments, "--url", url) == Ended(2, "", told)


def test_ctrl_c_is_heard_while_a_service_does_not_answer() -> None:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = subprocess.Popen(
            command_line(("search", "x", "--url", url)), env=bare(None), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(10).startswith(b"POST")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS / 2)
    assert (process.returncode, out, err) == (130, "", "aforesaid: interrupted\n")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    # More than a pipe holds, so that writing fails while the command still runs.
    program = "import sys; from aforesaid import cli; cli.run = lambda _: sys.stdout.write('x' * 10**6) * 0; cli.main()"
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-c", program], env=bare(None), stdout=closed, stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_error(closed: str) -> None:
    told = "print(sys.stdin.isatty(), file=sys.stderr)"
    program = f"import sys; from aforesaid import cli; cli.run = lambda _: {told} or 7; cli.main()"
    shell = ["bash", "-c", f'"$0" -c "$1" {closed}', sys.executable, program]
    done = subprocess.run(shell, env=bare(None), capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (7, b"" if "2>" in closed else b"False\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device here that is always full")
@pytest.mark.parametrize("much", [1, 10**6])
def test_output_that_cannot_be_written_is_an_error(much: int) -> None:
    program = f"import sys; from aforesaid import cli; cli.run = lambda _: sys.stdout.write('x' * {much}) * 0; cli.main()"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], env=bare(None), stdout=full, stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
    assert (done.returncode, done.stderr) == (2, b"aforesaid: cannot print: no space left on device\n")


def test_a_terminal_without_the_characters_gets_their_numbers() -> None:
    program = "from aforesaid import cli; cli.run = lambda _: print('\\u27e6x\\u27e7 \\u8a18') or 0; cli.main()"
    environment = bare({"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=SECONDS, check=True)
    assert done.stdout == b"\\u27e6x\\u27e7 \\u8a18\n"
