"""Hostile requests, made by a grammar from a seed: the same seed makes the same requests.

The messages follow the contract itself, so that a new field is attacked without a line here. Three kinds: bodies for any method in
JSON and in protobuf's binary form, some of them broken; headers; and bytes for a port that are no request at all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from google.protobuf.descriptor import FieldDescriptor

from tests.api.doors import Contract
from tests.faults.wire import (
    DATA,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    grpc_headers,
    head,
    message,
)

T = TypeVar("T")
MARKS = [
    '"',
    "'",
    "“",
    "”",
    "‘",
    "-",
    "--",
    '-"',
    "->",
    "#",
    "C++",
    ".NET",
    "*",
    "?",
    "[",
    "]",
    "(",
    ")",
    "\\",
    "/",
    ":",
    "%",
    "_",
    "`",
    "⟦",
    "⟧",
    "…",
]
WORDS = [
    "OR",
    "AND",
    "NOT",
    "foo:bar",
    "deploy",
    "deployed",
    "getHttpServer2",
    "t-shirt",
    "3.11.7",
    "don't",
    "ß",
    "straße",
    "İzmir",
    "ı",
    "ﬁ",
    "ａｂ",
]
SCRIPTS = [
    "記憶",
    "회의",
    "ไทยแลนด์",
    "မြန်မာ",
    "ᄀ",
    "नमस्ते",
    "עִבְרִית",
    "العربية",
    "Ω",
    "𝕏",
    "👩‍👩‍👧",
    "🇩🇪",
    "e\u0301",
    "\U0010ffff",
    "\ue000",
    "a" + "\u0300" * 80,
]
ODD = [
    "\0",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\u200b",
    "\u200c",
    "\u200d",
    "\u00ad",
    "\ufeff",
    "\u2060",
    "\u202e",
    "\u2066",
    "\u2028",
    "\ufffd",
    "\uffff",
    "\ud800",
    "\udc00",
    "\n",
    "\t",
    "\u3000",
]
NUMBERS = [
    0,
    -0,
    1,
    -1,
    7,
    100,
    101,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
]
LITERALS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999999",
    "00",
    "0x10",
    "1_000",
    "+1",
    "-",
    "'a'",
    "undefined",
    "\ufeff{}",
    "nul",
    "truefalse",
]
TIMES = [
    "",
    "now",
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "-1",
    "2024-13-45T99:99:99+99:99",
]
VALID = {
    "agent_id": ["ada", "hostile", "hostile-2"],
    "conversation_id": ["talk", "c"],
    "turn_id": ["talk:0", "t"],
    "query": ["deploy", '"deploy the" server'],
}


class Grammar:
    """Makes requests. `known` are ids, cursors and the like that some valid requests brought back."""

    def __init__(self, contract: Contract, methods: Sequence[str], chance: random.Random) -> None:
        self._contract, self._methods, self._chance = contract, methods, chance
        self.cursors: list[str] = [""]

    def method(self) -> str:
        """A method."""
        return self._chance.choice(self._methods)

    def one(self, *ways: Callable[[], T]) -> T:
        """What one of the ways makes."""
        return self._chance.choice(ways)()

    def sometimes(self, often: float) -> bool:
        """Tells whether something is to happen, so often of 1."""
        return self._chance.random() < often

    # -- text

    def text(self) -> str:
        """Any text: mostly a few words and marks, now and then a long one."""
        pool = self._chance.choice((MARKS, WORDS, SCRIPTS, ODD, [*MARKS, *WORDS, *SCRIPTS, *ODD]))
        count = self._chance.choice((0, 1, 1, 2, 3, 5, 8, 30, 200, self._chance.choice((501, 2_000, 20_000))))
        return self._chance.choice(("", " ", " ", "-", '"')).join(self._chance.choice(pool) for _ in range(count))

    def anything(self, depth: int = 0) -> Any:
        """Any value of JSON."""
        if depth > 4 or self.sometimes(0.6):
            return self.one(
                self.text, lambda: self._chance.choice(NUMBERS), lambda: self._chance.choice((None, True, False, {}, []))
            )
        count = self._chance.randrange(4)
        if self.sometimes(0.5):
            return [self.anything(depth + 1) for _ in range(count)]
        return {self.text(): self.anything(depth + 1) for _ in range(count)}

    # -- messages in JSON

    def body(self, method: str) -> bytes:
        """A body in JSON for a method: mostly well formed, sometimes broken."""
        asked, _ = self._contract.types(method)
        data = json.dumps(self._object(asked.DESCRIPTOR, 0), ensure_ascii=True, allow_nan=True).encode()
        if self.sometimes(0.85):
            return data
        return self.one(
            lambda: self.mangled(data),
            lambda: self._chance.choice(LITERALS).encode(),
            lambda: json.dumps(self.anything()).encode(),
            lambda: b'{"query":' * (depth := self._chance.choice((10, 900, 60_000))) + b"1" + b"}" * depth,
            lambda: b"[" * self._chance.choice((100, 999, 100_000)),
            lambda: json.dumps({"query": self.text()}, ensure_ascii=False).encode("utf-8", "surrogatepass"),
            lambda: self._chance.randbytes(self._chance.randrange(200)),
        )

    def _object(self, kind: Any, depth: int) -> dict[str, Any]:
        often = self._chance.choice((0.2, 0.5, 0.8))
        made = {}
        for field in kind.fields:
            if self.sometimes(often if depth < 6 else 0):
                name = field.name if self.sometimes(0.2) else field.json_name
                made[name] = self.anything() if self.sometimes(0.08) else self._values(field, depth)
        if self.sometimes(0.03):
            made[self.text()] = self.anything()
        return made

    def _values(self, field: FieldDescriptor, depth: int) -> Any:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            value = kind.fields_by_name["value"]
            return {self.text()[:30]: self._value(value, depth) for _ in range(self._chance.randrange(3))}
        if field.is_repeated:
            return [self._value(field, depth) for _ in range(self._chance.choice((0, 1, 1, 2, 5)))]
        return self._value(field, depth)

    def _value(self, field: FieldDescriptor, depth: int) -> Any:
        if field.enum_type is not None:
            names = [one.name for one in field.enum_type.values]
            return self._chance.choice([*names, *names, "MATCH_NONSENSE", 0, 1, 99, -1, 2**31, 2**40, 1.5, None])
        kind = field.message_type
        if kind is not None and kind.full_name == "google.protobuf.Timestamp":
            return self._chance.choice(TIMES)
        if kind is not None and kind.full_name.startswith("google.protobuf."):
            return self.text()
        if kind is not None:
            return self._object(kind, depth + 1)
        if field.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
            return self._string(field.name)
        if field.type == FieldDescriptor.TYPE_BOOL:
            return self._chance.choice((True, False, True, False, 1, "true"))
        return self._chance.choice([*NUMBERS, "7", "-1", str(2**64)])

    def _string(self, name: str) -> str:
        if name in {"cursor", "page_token"}:
            cursor = self._chance.choice(self.cursors)
            return cursor if self.sometimes(0.3) else self.mangled(cursor.encode()).decode("latin-1")
        known = VALID.get(name, [])
        return self._chance.choice(known) if known and self.sometimes(0.6) else self.text()

    # -- messages in protobuf's binary form

    def message(self, method: str) -> bytes:
        """A message in protobuf's binary form: mostly of the right fields, often with values that are none of theirs."""
        asked, _ = self._contract.types(method)
        data = self._fields(asked.DESCRIPTOR, 0)
        return data if self.sometimes(0.8) else self.mangled(data)

    def _fields(self, kind: Any, depth: int) -> bytes:
        made = b""
        for field in kind.fields:
            for _ in range(self._chance.choice((0, 0, 1, 1, 2)) if depth < 6 else 0):
                made += self._field(field, depth)
        if self.sometimes(0.05):
            made += _varint(self._chance.choice((0, 3, 7, 11, 12, 0x7FFFFFFF, 2**35))) + self._chance.randbytes(
                self._chance.randrange(12)
            )
        return made

    def _field(self, field: FieldDescriptor, depth: int) -> bytes:
        if self.sometimes(0.05):
            return _varint(field.number << 3 | self._chance.randrange(8)) + self._chance.randbytes(self._chance.randrange(10))
        if field.message_type is not None:
            held = self._fields(field.message_type, depth + 1)
        elif field.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
            held = self._string(field.name).encode("utf-8", "surrogatepass")
        elif field.is_repeated:
            held = b"".join(_varint(self._chance.choice((0, 1, 2, 99, 2**31, 2**64 - 1))) for _ in range(self._chance.randrange(4)))
        else:
            return _varint(field.number << 3) + _varint(self._chance.choice((0, 1, 2, 99, 2**31, 2**63, 2**64 - 1)))
        size = len(held) if self.sometimes(0.97) else self._chance.choice((0, len(held) + 1, 2**31, 2**63))
        return _varint(field.number << 3 | 2) + _varint(size) + held

    def mangled(self, data: bytes) -> bytes:
        """The same bytes with some of them changed, gone, doubled or cut off."""
        made = bytearray(data)
        for _ in range(self._chance.choice((1, 1, 2, 5))):
            at = self._chance.randrange(len(made) + 1)
            match self._chance.randrange(5):
                case 0:
                    del made[at:]
                case 1:
                    made[at:at] = self._chance.randbytes(self._chance.choice((1, 1, 4, 40)))
                case 2:
                    del made[at : at + self._chance.choice((1, 2, 10))]
                case 3:
                    made += made[at : at + 100]
                case _:
                    made[at : at + 1] = bytes([self._chance.randrange(256)])
        return bytes(made)

    # -- headers

    def headers(self) -> dict[str, str]:
        """Headers beside those that a request needs; none with a line break, which would be another request."""
        made = {}
        if self.sometimes(0.3):
            made["x-agent-id"] = self._chance.choice(
                ("ada", "hostile", "", "%", "%FF", "%00", "a" * 600, quote(self.text()[:60], errors="replace"))
            )
        if self.sometimes(0.05):
            made["x-request-id"] = self._chance.choice(("r-1", "", "a" * 500, "..", "\x7f"))
        if self.sometimes(0.05):
            made["connect-timeout-ms"] = self._chance.choice(("0", "1", "50", "-1", "x", "9" * 10, "9" * 30, "1.5"))
        if self.sometimes(0.03):
            made["content-encoding"] = self._chance.choice(("gzip", "identity", "br", "zstd", "", "gzip, gzip"))
        if self.sometimes(0.03):
            made["origin"] = self._chance.choice(("null", "http://localhost", "https://example.org", ""))
        if self.sometimes(0.03):
            made["authorization"] = self._chance.choice(("Bearer ", "Bearer x", "Basic eDp5", "Bearer " + "a" * 3_000))
        return made

    # -- bytes that are no request

    def http(self, method: str) -> bytes:
        """Bytes for the HTTP port."""
        body = self.body(method)[:2_000]
        sound = head(f"/{method}", f"Content-Length: {len(body)}") + b"\r\n" + body
        junk = self._chance.randbytes(self._chance.choice((1, 20, 500)))
        return self.one(
            lambda: self.mangled(sound),
            lambda: junk,
            lambda: sound * self._chance.choice((2, 5)),
            lambda: self.mangled(sound * 2),
            lambda: head(f"/{method}", "Content-Length: 5", "Transfer-Encoding: chunked") + b"\r\n5\r\nabcde\r\n0\r\n\r\n",
            lambda: (
                head(f"/{method}", f"Content-Length: {self._chance.choice(('-1', '+5', '0x5', '5, 5', '9' * 30, ''))}")
                + b"\r\nabcde"
            ),
            lambda: (
                head(f"/{method}", "Transfer-Encoding: chunked")
                + b"\r\n"
                + self._chance.choice((b"-1\r\n", b"zz\r\n", b"ffffffffffffffffff\r\n", b"5;x=y\r\nabcde\r\n0\r\n"))
            ),
            lambda: head(f"/{method}", "Expect: 100-continue", "Content-Length: 3") + b"\r\n{}",
            lambda: (
                head(f"/{method}", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQ")
                + b"\r\n"
                + body
            ),
            lambda: head(f"/{method}", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA==") + b"\r\n",
            lambda: (
                head(
                    self._chance.choice(
                        ("*", "http://localhost/healthz", "/%", "/%00", "//", "/a b", "/" + "a" * 9_000, "/healthz?\0")
                    )
                )
                + b"\r\n"
            ),
            lambda: (
                head("/healthz", method=self._chance.choice(("GET", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PRI", "get", "BREW")))
                + b"\r\n"
            ),
            lambda: (
                head(f"/{method}", f"Host: {self._chance.choice(('evil.example', '127.0.0.1.evil', '', 'localhost:99999'))}")
                + b"\r\n"
            ),
            lambda: (
                head(f"/{method}").replace(
                    b"Host: localhost", self._chance.choice((b"X: y", b"Host:", b"Host: [::1", b"Host: \xff"))
                )
                + b"\r\n"
            ),
            lambda: head(f"/{method}", *[f"X-{at}: y" for at in range(self._chance.choice((10, 2_000)))]) + b"\r\n",
            lambda: PREFACE + frame(SETTINGS),
        )

    def framed(self, method: str) -> tuple[str, bytes]:
        """A content type of a stream and a body for it: envelopes of Connect or of gRPC-Web, some broken."""
        kind = self._chance.choice(
            ("application/connect+json", "application/connect+proto", "application/grpc-web+proto", "application/grpc-web+json")
        )
        make = self.body if kind.endswith("json") else self.message
        data = b"".join(message(make(method), compressed=self.sometimes(0.1)) for _ in range(self._chance.choice((0, 1, 1, 2, 5))))
        if self.sometimes(0.3):
            data = self.mangled(data)
        if self.sometimes(0.1):
            data += bytes([self._chance.choice((0, 1, 2, 0x80, 0xFF))]) + b"\xff\xff\xff\xff"
        return kind, data

    def http2(self, method: str) -> bytes:
        """Bytes for the gRPC port."""
        begun = frame(HEADERS, 4, 1, grpc_headers(method))
        sent = frame(DATA, END_STREAM, 1, message(self.message(method)[:10_000]))
        opened = PREFACE + frame(SETTINGS)
        junk = self._chance.randbytes(self._chance.choice((1, 20, 500)))
        return self.one(
            lambda: junk,
            lambda: PREFACE + junk,
            lambda: opened + junk,
            lambda: opened + begun + sent,
            lambda: self.mangled(opened + begun + sent),
            lambda: opened + begun + self.mangled(sent),
            lambda: opened + begun + frame(DATA, END_STREAM, 1, self.mangled(message(self.message(method)[:10_000]))),
            lambda: opened + frame(HEADERS, 4, 1, self.mangled(grpc_headers(method))) + sent,
            lambda: opened + frame(HEADERS, 0, 1, grpc_headers(method)),
            lambda: opened + frame(HEADERS, 4, self._chance.choice((0, 2, 2**31 - 1)), grpc_headers(method)) + sent,
            lambda: opened + begun + frame(WINDOW_UPDATE, 0, 1, (2**31 - 1).to_bytes(4, "big")) * 2,
            lambda: opened + (begun + frame(RST_STREAM, 0, 1, b"\0\0\0\x08")) * 3,
            lambda: opened + frame(PING, 0, 0, b"12345678") * self._chance.choice((1, 50)),
            lambda: opened + frame(SETTINGS, 0, 0, b"\0\x04\xff\xff\xff\xff"),
            lambda: opened + frame(self._chance.randrange(256), self._chance.randrange(256), self._chance.randrange(4), junk),
            lambda: opened + b"\xff\xff\xff\0\0\0\0\0\x01" + junk,
            lambda: (
                opened
                + frame(
                    HEADERS, 4, 1, grpc_headers(method, ("grpc-timeout", self._chance.choice(("0n", "1m", "x", "9" * 20 + "S"))))
                )
                + sent
            ),
            lambda: (
                opened
                + frame(HEADERS, 4, 1, grpc_headers(self._chance.choice(("nowhere", "", "a/b/c", "grpc.health.v1.Health/Check"))))
                + sent
            ),
        )


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
