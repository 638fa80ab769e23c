"""The token and whom it is shown to, and whose certificate is trusted."""

from __future__ import annotations

import logging
import ssl
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import aforesaid
from aforesaid import Agent, Config, Conversation, Text, Turn
from aforesaid.agent.v1 import agent_service_pb
from tests.api.certificates import Signed, signed
from tests.api.guarded import Guarded, guarded
from tests.client.both import Calling, Connect, Script
from tests.client.ports import answering, refused_port

TOKEN = "afs_Zm9yZXNhaWQ-secret"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"


# The token


def test_the_token_is_sent_with_every_call(connect: Connect) -> None:
    with answering(EMPTY) as (url, heard):
        client = connect(url, "ada", token=TOKEN)
        client.agent()
        client.append("c", [])
    assert [f"\r\nauthorization: bearer {TOKEN}\r\n".lower().encode() in request.lower() for request in heard] == [True, True]


def test_without_a_token_no_header_is_sent(calling: Calling) -> None:
    script = Script(get_agent=lambda _: agent_service_pb.GetAgentResponse())
    calling(script).agent()
    assert "authorization" not in script.headers[0]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://127.0.0.1:8787", True),
        ("http://[::1]:8787", True),
        ("http://localhost", True),
        ("https://aforesaid.example", True),
        ("http://aforesaid.example", False),
        ("http://192.168.1.7:8787", False),
        ("http://0.0.0.0:8787", False),
    ],
)
def test_the_token_does_not_travel_in_clear_text_to_another_machine(url: str, sent: bool) -> None:
    if sent:
        assert Config.read({"url": url, "token": TOKEN}, {}).token == TOKEN
        return
    with pytest.raises(aforesaid.InvalidArgument) as caught:
        Config.read({"url": url, "token": TOKEN}, {})
    assert caught.value.message.startswith(f"token: would travel in clear text to {url}: ")
    assert TOKEN not in caught.value.message
    assert Config.read({"url": url, "token": TOKEN, "token_in_clear": True}, {}).token == TOKEN
    assert Config.read({"url": url, "token": TOKEN}, {"AFORESAID_TOKEN_IN_CLEAR": "1"}).token == TOKEN
    assert Config.read({"url": url}, {}).token == ""


@pytest.mark.parametrize("token", ["two words", "line\nend", "é", "\udc80", " "])
def test_a_token_that_no_header_carries_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(aforesaid.InvalidArgument) as caught:
        Config.read({"token": token}, {})
    assert caught.value.message == "token: must be visible ASCII without blanks (--token or AFORESAID_TOKEN)"


def test_the_token_stands_in_no_repr_no_error_and_no_log(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = connect(refused_port(), "ada", token=TOKEN, retries=1)
    with pytest.raises(aforesaid.Unreachable) as caught:
        client.agent()
    told = [repr(client), repr(client.config), repr(client.wire), str(client.config), caplog.text]
    told += traceback.format_exception(caught.value)
    told += [repr(caught.value), repr(vars(caught.value)), repr(caught.value.__cause__)]
    assert [text for text in told if TOKEN in text] == []
    assert "ada" in repr(client)


@pytest.mark.parametrize("url", ["http://ada:secret@127.0.0.1", "https://secret@example.org/x", "http://ada:secret@[::1"])
def test_an_address_with_a_password_is_refused_and_not_told(url: str) -> None:
    with pytest.raises(aforesaid.InvalidArgument, match="must hold no user name and no password") as caught:
        Config.read({"url": url}, {})
    assert "secret" not in caught.value.message


def test_no_token_goes_where_an_answer_points_to(connect: Connect) -> None:
    with answering(EMPTY) as (elsewhere, heard_elsewhere):
        moved = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}/\r\nContent-Length: 0\r\n\r\n".encode()
        with answering(moved) as (url, heard), pytest.raises(aforesaid.Unexpected):
            connect(url, "", token=TOKEN).agent()
    assert (len(heard), heard_elsewhere) == (1, [])


# Certificates


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return signed(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls(files: Signed) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


@pytest.fixture(scope="module")
def guard(files: Signed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The service itself, with TLS and tokens."""
    settings = {"tls_certificate": files.certificate, "tls_key": files.key}
    with guarded(tmp_path_factory.mktemp("guarded") / "data", verify=files.ca, **settings) as started:
        yield started


def test_a_token_over_tls_says_who_calls(connect: Connect, guard: Guarded, files: Signed, kind: str) -> None:
    url, ca = guard.service.url, str(files.ca)
    agent = connect(url, token=guard.owner.token("--agent", f"ada-{kind}"), ca=ca)
    assert agent.agent().agent_id == f"ada-{kind}"
    assert agent.append("c", [Turn("user", (Text("over tls"),), "t")]).revision == 1
    user = connect(url, token=guard.owner.token("--user", "bob"), ca=ca)
    assert [hit.turn_id for page in user.search("tls", agent_id=f"ada-{kind}") for hit in page.matches] == ["t"]


@pytest.mark.parametrize("token", ["", "afs_nobody-has-this-one"])
def test_no_token_or_a_wrong_one_is_unauthenticated(connect: Connect, guard: Guarded, files: Signed, token: str) -> None:
    client = connect(guard.service.url, token=token, ca=str(files.ca))
    with pytest.raises(aforesaid.Unauthenticated) as caught:
        client.agent()
    assert caught.value.request_id
    assert not caught.value.retryable
    with pytest.raises(aforesaid.Unauthenticated):
        client.import_turns([(Agent("a"), Conversation("c", "a"))])


def test_a_service_whose_ca_is_named_is_trusted(connect: Connect, files: Signed, tls: ssl.SSLContext) -> None:
    with answering(EMPTY, tls=tls) as (url, heard):
        connect(url, "", ca=str(files.ca), token=TOKEN).agent()
    assert len(heard) == 1


def test_a_service_of_an_unknown_ca_is_told_at_once_and_gets_no_request(connect: Connect, tls: ssl.SSLContext) -> None:
    with answering(EMPTY, tls=tls) as (url, heard), pytest.raises(aforesaid.Unreachable) as caught:
        connect(url, "", token=TOKEN, retries=100, timeout=600).agent()
    assert caught.value.message == f"cannot reach {url}: its certificate is not trusted"
    assert (heard, caught.value.retryable) == ([], False)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "ca: cannot be read: No such file or directory: "),
        (b"", "ca: holds no certificate that can be used: "),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca: holds no certificate that can be used: "),
    ],
)
def test_a_file_of_no_certificates_is_named(connect: Connect, tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(aforesaid.InvalidArgument) as caught:
        connect("https://127.0.0.1", "", ca=str(path))
    assert caught.value.message == told + str(path)


def test_a_certificate_for_a_service_that_has_none_is_told(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(aforesaid.InvalidArgument, match=r"^ca: is for https://, and the service is at http://127\.0\.0\.1$"):
        connect("http://127.0.0.1", "", ca="any.pem")
    # Nobody gave it for this call.
    monkeypatch.setenv("AFORESAID_CA", "any.pem")
    assert connect("http://127.0.0.1", "").config.ca == "any.pem"
