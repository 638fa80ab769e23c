"""TLS on both ports, which hosts are served without it, and which Host and Origin headers are answered with tokens."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from click.testing import CliRunner

from aforesaid_server import doors
from aforesaid_server.__main__ import commands
from aforesaid_server.doors import listen, tls_of
from aforesaid_server.errors import StartError
from aforesaid_server.settings import Settings
from scripts.running_server import start
from tests.api.certificates import Signed, signed
from tests.api.doors import SEARCH, ConnectDoor, Contract, GrpcDoor, running
from tests.api.fakes import FakeCore
from tests.api.guarded import Guarded, Owner, guarded

ASKED = {"query": "x"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return signed(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guard(certificate: Signed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    settings = {"tls_certificate": certificate.certificate, "tls_key": certificate.key}
    with guarded(tmp_path_factory.mktemp("tls") / "data", verify=certificate.ca, **settings) as started:
        yield started


def over_tls(target: str, ca: Path, contract: Contract) -> GrpcDoor:
    """gRPC over TLS."""
    door = GrpcDoor(target, contract)
    door.close()
    door.channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(ca.read_bytes()))
    return door


# Both ports speak it, and nothing else


def test_both_ports_speak_tls(guard: Guarded, certificate: Signed, contract: Contract) -> None:
    assert guard.service.url.startswith("https://127.0.0.1:")
    token = {"authorization": f"Bearer {guard.owner.token('--user', 'ada')}"}
    assert guard.door.call(SEARCH, ASKED, token).code == "ok"
    door = over_tls(guard.service.target, certificate.ca, contract)
    try:
        assert door.call(SEARCH, ASKED, token).code == "ok"
        assert door.call(SEARCH, ASKED).code == "unauthenticated"
    finally:
        door.close()
    answer = guard.door.http.get("/healthz")
    assert answer.status_code == 200
    assert answer.extensions["network_stream"].get_extra_info("ssl_object").version() in {"TLSv1.2", "TLSv1.3"}


def test_neither_port_speaks_without_it(guard: Guarded, contract: Contract) -> None:
    with httpx.Client() as http, pytest.raises(httpx.HTTPError):
        http.get(guard.service.url.replace("https:", "http:") + "/healthz")
    door = GrpcDoor(guard.service.target, contract)
    try:
        assert door.call(SEARCH, ASKED, timeout=5).code in {"unavailable", "deadline_exceeded"}
    finally:
        door.close()


def test_who_does_not_know_the_ca_is_not_fooled(guard: Guarded, tmp_path: Path, contract: Contract) -> None:
    other = signed(tmp_path)
    context = ssl.create_default_context(cafile=str(other.ca))
    with httpx.Client(verify=context) as http, pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        http.get(guard.service.url + "/healthz")
    door = over_tls(guard.service.target, other.ca, contract)
    try:
        assert door.call(SEARCH, ASKED, timeout=5).code in {"unavailable", "deadline_exceeded"}
    finally:
        door.close()


def test_old_versions_are_not_spoken(guard: Guarded, certificate: Signed) -> None:
    context = ssl.create_default_context(cafile=str(certificate.ca))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    tls = tls_of(Settings(tls_certificate=certificate.certificate, tls_key=certificate.key))
    assert tls is not None
    assert tls.context.minimum_version is ssl.TLSVersion.TLSv1_2
    with httpx.Client(verify=context) as http:
        assert http.get(guard.service.url + "/healthz").status_code == 200


def test_a_process_of_its_own_says_where_it_serves(certificate: Signed, tmp_path: Path) -> None:
    settings = {"AFORESAID_TLS_CERTIFICATE": str(certificate.certificate), "AFORESAID_TLS_KEY": str(certificate.key)}
    settings["AFORESAID_AUTH"] = "token"
    token = Owner(tmp_path / "data").token("--user", "ada")
    server = start(tmp_path / "data", settings=settings, log=tmp_path / "log")
    try:
        door = ConnectDoor(server.url, verify=certificate.ca)
        try:
            assert door.call(SEARCH, ASKED, {"authorization": f"Bearer {token}"}).code in {"ok", "unavailable"}
        finally:
            door.close()
    finally:
        assert server.stop() == 0
    said = server.told()
    assert f"Connect and gRPC-Web on {server.url}" in said
    assert server.url.startswith("https://")


# What a server does not begin with


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"certificate": "none.pem"}, "tls_certificate {certificate}: no such file or directory"),
        ({"key": "none.pem"}, "tls_key {key}: no such file or directory"),
        ({"certificate": "."}, "tls_certificate {certificate}: is a directory"),
        ({"key": "other/key.pem"}, "tls_key {key}: is not the key of tls_certificate {certificate}"),
        ({"certificate": "key.pem"}, "tls_certificate {certificate}, tls_key {key}: the first holds no PEM certificate"),
        ({"key": "certificate.pem"}, "tls_certificate {certificate}, tls_key {key}: the second holds no PEM private key"),
        ({"key": "empty.pem"}, "tls_certificate {certificate}, tls_key {key}: the second holds no PEM private key"),
        ({"certificate": "broken.pem"}, "tls_certificate {certificate}, tls_key {key}: cannot be read as PEM"),
        ({"key": "encrypted.pem"}, "tls_key {key}: is encrypted; a service that starts by itself needs one that is not"),
    ],
)
def test_certificates_that_cannot_be_used(files: dict[str, str], told: str, tmp_path: Path) -> None:
    made = signed(tmp_path)
    signed(tmp_path / "other")
    (tmp_path / "empty.pem").touch()
    text = made.certificate.read_bytes()
    (tmp_path / "broken.pem").write_bytes(text[:60] + text[90:])
    paths = {name: str(tmp_path / files.get(name, f"{name}.pem")) for name in ("certificate", "key")}
    arguments = ["--tls-certificate", paths["certificate"], "--tls-key", paths["key"], "--port", "0", "--grpc-port", "0"]
    outcome = CliRunner().invoke(commands, ["serve", "--data", str(tmp_path / "data"), *arguments])
    assert (outcome.exit_code, outcome.output) == (2, f"aforesaid-server: {told.format(**paths)}\n")
    assert not (tmp_path / "data").exists()


CLEAR = "tokens would travel in clear; name tls_certificate and tls_key, or allow_plaintext where a proxy in front ends TLS"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"host": "0.0.0.0"}, "host 0.0.0.0 is not a loopback address: without tokens the service is for this machine only"),
        (
            {"host": "::", "tls_certificate": "c", "tls_key": "k"},
            "host :: is not a loopback address: without tokens the service is for this machine only",
        ),
        (
            {"host": "0.0.0.0", "allow_plaintext": True},
            "host 0.0.0.0 is not a loopback address: without tokens the service is for this machine only",
        ),
        ({"host": "10.1.2.3", "auth": "token"}, f"host 10.1.2.3 is not a loopback address: {CLEAR}"),
        ({"host": "", "auth": "token"}, "host is empty: 0.0.0.0 or :: is every address of this machine"),
        ({"tls_key": "k"}, "tls_certificate and tls_key are given together or not at all"),
        ({"tls_certificate": "c", "auth": "token"}, "tls_certificate and tls_key are given together or not at all"),
        ({"allowed_hosts": ["a.example"]}, "allowed_hosts needs auth token: without tokens only loopback names are answered to"),
    ],
)
def test_settings_that_would_leave_it_open(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="1 validation error") as raised:
        Settings(**given)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "given", [{"tls_certificate": "c", "tls_key": "k"}, {"allow_plaintext": True}, {"host": "127.0.0.1"}, {"host": "localhost"}]
)
def test_settings_that_do_not(given: dict[str, Any]) -> None:
    assert Settings(**{"host": "0.0.0.0", "auth": "token"} | given).auth == "token"


def test_the_sockets_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may stand for another address than its setting looked like."""
    monkeypatch.setattr(doors, "is_loopback", lambda _: False)
    with pytest.raises(StartError, match="which is not a loopback address: the service is for this machine only"):
        listen("127.0.0.1", 0)
    (opened,) = listen("127.0.0.1", 0, anywhere=True)
    with opened:
        assert opened.family is socket.AF_INET


# Host and Origin where tokens are demanded


@pytest.mark.parametrize(
    ("hosts", "host", "served"),
    [
        ([], "aforesaid.example", True),
        ([], "aforesaid.example:8787", True),
        ([], "10.1.2.3:8787", True),
        ([], "[2001:db8::1]:8787", True),
        ([], "a b", False),
        ([], "", False),
        (["aforesaid.example"], "aforesaid.example", True),
        (["aforesaid.example"], "Aforesaid.EXAMPLE.:8787", True),
        (["Aforesaid.Example"], "aforesaid.example", True),
        (["aforesaid.example"], "localhost:8787", True),
        (["aforesaid.example"], "other.example", False),
        (["aforesaid.example"], "sub.aforesaid.example", False),
        (["aforesaid.example"], "10.1.2.3", False),
    ],
)
def test_hosts(hosts: list[str], host: str, served: bool) -> None:
    core = FakeCore()
    with (
        running(core.open_house(), auth="token", allowed_hosts=frozenset(hosts)) as service,
        httpx.Client(base_url=service.url) as http,
    ):
        answer = http.post(f"/{SEARCH}", json=ASKED, headers={"host": host})
        assert answer.status_code == (200 if served else 403)
        assert served or answer.json() == {"code": "permission_denied", "message": "host: is not served here"}
        assert http.get("/healthz", headers={"host": host}).status_code == 200, "a probe asks by whatever address it found"


def test_origins_must_be_allowed_all_the_same() -> None:
    core = FakeCore()
    allowed = "https://app.example"
    with (
        running(core.open_house(), auth="token", allowed_origins=frozenset({allowed})) as service,
        httpx.Client(base_url=service.url) as http,
    ):
        own = service.url
        for origin, status in ((own, 200), (allowed, 200), (own.replace("http:", "https:"), 403), ("https://evil.example", 403)):
            assert http.post(f"/{SEARCH}", json=ASKED, headers={"origin": origin}).status_code == status, origin
        asked = {"origin": allowed, "access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        assert "authorization" in http.options(f"/{SEARCH}", headers=asked).headers["access-control-allow-headers"]


def test_the_services_own_origin_over_tls(guard: Guarded) -> None:
    token = {"authorization": f"Bearer {guard.owner.token('--user', 'ada')}"}
    for origin, status in ((guard.service.url, 200), (guard.service.url.replace("https:", "http:"), 403)):
        assert guard.door.http.post(f"/{SEARCH}", json=ASKED, headers=token | {"origin": origin}).status_code == status
