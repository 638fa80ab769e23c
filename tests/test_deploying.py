"""docs/deploying.md and docs/monitoring.md: what they tell to run can be run, and the configurations in them serve what they say.

A program that is not part of the project (nginx, systemd-analyze) is asked where the machine has it, in CI too: what is ours in
those blocks (names, flags, variables) is checked without it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import grpc
import httpx
import pytest
from click.testing import CliRunner

from aforesaid._config import SETTINGS as CLIENT_SETTINGS
from aforesaid_server.__main__ import commands
from aforesaid_server.settings import Settings
from scripts.running_server import ROOT
from scripts.write_docs import CONFIGURATION, MONITORING
from tests.api.callers import APPEND, IMPORT, new, ok
from tests.api.certificates import Signed, signed
from tests.api.doors import SEARCH, ConnectDoor, Contract, GrpcDoor
from tests.conftest import StartServer
from tests.test_docs import FENCE, PAGES, disagreement, name_of

DEPLOYING = ROOT / "docs" / "deploying.md"
# Variables of the tests and of `make`, which configure no service.
OTHERS = {"AFORESAID_LONG", "AFORESAID_SHARED"}


def block(page: Path, language: str) -> str:
    """The one block of a language in a page."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0])


# -- commands and variables


def told_commands(page: Path) -> Iterator[list[str]]:
    """Yields the words of each `aforesaid-server` command that a page shows, alone in a line or in the middle of a sentence."""
    text = page.read_text("utf-8")
    for fence in FENCE.finditer(text):
        for line in fence["text"].replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True) if re.match(r"(\$ )?(ExecStart=\S*/)?aforesaid-server ", line) else []
            yield from [words[words.index("aforesaid-server") + 1 :]] if "aforesaid-server" in words else []
    for quoted in re.findall(r"`aforesaid-server( [^`\n]*)`", FENCE.sub("", text)):
        yield shlex.split(quoted)


def problem_of(words: list[str]) -> str:
    """Says what is wrong with the words of a command, empty if it could be run."""
    command: click.Command = commands
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.commands.get(words[0])
        if found is None:
            return f"{words[0]} is no command"
        command, words = found, words[1:]
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    wrong = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    return f"{command.name} has no {wrong[0]}" if wrong else ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_server_command_that_a_page_shows_is_there(page: Path) -> None:
    assert [told for words in told_commands(page) if (told := problem_of(words))] == []


def test_a_command_that_is_not_there_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "$ aforesaid-server chekc --url x\n$ aforesaid-server check --uri x # no\n"
    page.write_text(f"```console\n{block}```\n`aforesaid-server serve --ports 1`\n")
    assert [problem_of(words) for words in told_commands(page)] == [
        "chekc is no command",
        "check has no --uri",
        "serve has no --ports",
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_variable_that_a_page_names_is_a_setting(page: Path) -> None:
    known = {f"AFORESAID_{name.upper()}" for name in Settings.model_fields} | {setting.variable for setting in CLIENT_SETTINGS}
    named = set(re.findall(r"\bAFORESAID_[A-Z_]+\b", page.read_text("utf-8")))
    assert sorted(named - known - OTHERS) == []


def test_every_setting_stands_in_the_page_of_settings() -> None:
    page = CONFIGURATION.read_text("utf-8")
    assert [name for name in Settings.model_fields if f"`AFORESAID_{name.upper()}`" not in page] == []


# -- blocks


def test_what_a_check_prints_is_what_the_page_shows(start_server: StartServer) -> None:
    server = start_server()
    shown = next(
        fence["text"] for fence in FENCE.finditer(MONITORING.read_text("utf-8")) if "aforesaid-server check" in fence["text"]
    )
    command, _, output = shown.partition("\n")
    words = command.replace("http://127.0.0.1:8787", server.url).replace("127.0.0.1:8788", server.grpc)
    outcome = CliRunner().invoke(commands, shlex.split(words)[2:])
    assert outcome.exit_code == 0, outcome.output
    assert disagreement(output, outcome.stdout.replace(server.url, "http://127.0.0.1:8787")) == ""


def test_a_line_of_the_log_has_the_fields_that_the_page_shows(start_server: StartServer) -> None:
    server = start_server()
    door = ConnectDoor(server.url)
    door.call(SEARCH, {"query": "x"}, {"x-agent-id": "ada"})
    door.close()
    shown = json.loads(block(MONITORING, "json"))
    logged = [json.loads(line) for line in server.told().splitlines() if line.startswith('{"method"')]
    assert logged[-1].keys() == shown.keys()
    assert {name: type(value) for name, value in logged[-1].items()} == {name: type(value) for name, value in shown.items()}


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    """Its stop takes longer than the drain, and systemd, where there is one, knows every line."""
    unit = block(DEPLOYING, "ini")
    stop = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > Settings().drain_seconds
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    file = tmp_path / "aforesaid.service"
    file.write_text(unit.replace("/usr/local/bin/aforesaid-server", "/bin/true").replace("User=aforesaid\n", ""))
    done = subprocess.run([analyze, "verify", "--man=no", str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert "aforesaid.service" not in done.stderr


NAMES = ("transcripts.example.org", "grpc.transcripts.example.org")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a proxy is to listen, the certificates of both names, and a folder of its own."""

    port: int
    pairs: tuple[Signed, Signed]
    folder: Path


def _nginx(place: Place, url: str, over_grpc: str) -> list[str]:
    """Returns the command that serves what the page says, but for ports, certificates and what stands around it."""
    text = block(DEPLOYING, "nginx")
    for pair in place.pairs:
        text = text.replace("/etc/ssl/transcripts.pem", str(pair.certificate), 1)
        text = text.replace("/etc/ssl/transcripts.key", str(pair.key), 1)
    # Without tokens the service answers to loopback names alone.
    text = text.replace("listen 443", f"listen 127.0.0.1:{place.port}").replace("$host", "localhost")
    text = text.replace("http://127.0.0.1:8787", url).replace("127.0.0.1:8788", over_grpc)
    folders = "".join(f"{name}_temp_path {place.folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    whole = f"daemon off; pid {place.folder / 'pid'}; events {{}}\nhttp {{\naccess_log off;\n{folders}{text}\n}}\n"
    (place.folder / "nginx.conf").write_text(whole)
    return ["nginx", "-e", "stderr", "-p", str(place.folder), "-c", str(place.folder / "nginx.conf")]


def _caddy(place: Place, url: str, over_grpc: str) -> list[str]:
    """The same for Caddy, which would get its certificates by itself."""
    text = block(DEPLOYING, "caddyfile").replace("127.0.0.1:8788", over_grpc).replace("127.0.0.1:8787", url.removeprefix("http://"))
    for name, pair in zip(NAMES, place.pairs, strict=True):
        told = f"https://{name}:{place.port} {{\n    bind 127.0.0.1\n    tls {pair.certificate} {pair.key}\n"
        text = re.sub(rf"^{name} {{\n", told, text, flags=re.MULTILINE)
    text = text.replace("flush_interval -1", "flush_interval -1\n        header_up Host localhost")
    whole = f"{{\n    admin off\n    auto_https off\n    storage file_system {place.folder}\n}}\n{text}"
    (place.folder / "Caddyfile").write_text(whole)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(place.folder / "Caddyfile")]


@pytest.fixture(params=[_nginx, _caddy], ids=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, start_server: StartServer, tmp_path: Path) -> Iterator[Place]:
    """A server behind a proxy of the page."""
    name = request.param.__name__.removeprefix("_")
    if shutil.which(name) is None:
        pytest.skip(f"no {name} on this machine")
    server = start_server()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path / name
    place = Place(port, (signed(folder / "http", NAMES[0]), signed(folder / "grpc", NAMES[1])), folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            request.param(place, server.url, server.grpc), stderr=log, env=os.environ | {"HOME": str(folder)}
        )
    try:
        _wait_for(port, process)
        yield place
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise AssertionError(f"the proxy ended with {process.returncode}")


def test_a_proxy_of_the_page_serves_both_doors(proxy: Place, proto_roots: tuple[Path, ...]) -> None:
    door, agent = ConnectDoor("http://127.0.0.1"), {"x-agent-id": new("agent")}
    door.close()
    door.http = httpx.Client(
        base_url=f"https://{NAMES[0]}", transport=_Dialling(NAMES[0], proxy.port, proxy.pairs[0].ca), timeout=30
    )
    with closing(door):
        assert door.http.get("/healthz").json() == {"alive": True}
        ok(door.call(APPEND, {"conversationId": "talk", "turns": [{"parts": [{"text": "kestrel"}]}]}, agent))
        talk: dict[str, Any] = {"conversationId": "c", "turns": [{"parts": [{"text": "k" * 2_000_000}]}]}
        ok(door.stream(IMPORT, [{"agent": {"agentId": new("other")}, "conversation": talk}, {"conversation": talk}]))
    over_grpc = GrpcDoor("127.0.0.1:1", Contract(proto_roots))
    over_grpc.close()
    over_grpc.channel = grpc.secure_channel(
        f"127.0.0.1:{proxy.port}",
        grpc.ssl_channel_credentials(proxy.pairs[1].ca.read_bytes()),
        options=[("grpc.ssl_target_name_override", NAMES[1]), ("grpc.default_authority", NAMES[1])],
    )
    with closing(over_grpc):
        refused = over_grpc.call(SEARCH, {"query": "x", "pagination": {"limit": -7}}, agent)
        assert (refused.code, refused.violations) == ("invalid_argument", [("pagination.limit", "-7 is less than 0")])
        assert ok(over_grpc.call(SEARCH, {"query": "kestrel"}, agent)).body["matches"]


class _Dialling(httpx.HTTPTransport):
    """Connects to 127.0.0.1 and speaks to a name, as if a name server had said so."""

    def __init__(self, name: str, port: int, ca: Path) -> None:
        super().__init__(verify=ssl.create_default_context(cafile=ca))
        self._name, self._port = name, port

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions = dict(request.extensions) | {"sni_hostname": self._name}
        request.url = request.url.copy_with(host="127.0.0.1", port=self._port)
        request.headers["host"] = self._name
        return super().handle_request(request)


def test_the_page_of_nginx_is_whole() -> None:
    """What is ours in it, where there is no nginx to ask."""
    text = block(DEPLOYING, "nginx")
    settings: Any = Settings()
    assert f"proxy_pass http://127.0.0.1:{settings.port};" in text
    assert f"grpc_pass grpc://127.0.0.1:{settings.grpc_port};" in text
    assert text.count("client_max_body_size 0;") == text.count("server {") == 2
