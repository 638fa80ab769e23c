"""Bytes on the ports as a program of ill will, or half a program, would send them: HTTP/1.1 and HTTP/2 by hand.

No client library would send half a message, or a frame that is none.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

SECONDS = 60
# Frames of HTTP/2 (RFC 9113, section 6).
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0x0, 0x1, 0x3, 0x4, 0x6, 0x7, 0x8
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW_SIZE = 0x4


def address_of(url: str) -> tuple[str, int]:
    """Host and port of a URL or a gRPC target."""
    found = urlsplit(url if "//" in url else f"//{url}")
    assert found.hostname
    assert found.port
    return found.hostname, found.port


def connected(url: str, *, buffer: int = 0) -> socket.socket:
    """A connection, whose kernel keeps about `buffer` bytes that nobody has read."""
    made = socket.socket(socket.AF_INET)
    if buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.settimeout(SECONDS)
    made.connect(address_of(url))
    return made


def head(path: str, *more: str, method: str = "POST", content_type: str = "application/json") -> bytes:
    """The head of a request, without the empty line that ends it."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {content_type}", *more]
    return "".join(f"{line}\r\n" for line in lines).encode()


def all_of(connection: socket.socket) -> bytes:
    """What comes until the other side closes, be it by a reset."""
    got = b""
    try:
        while piece := connection.recv(65_536):
            got += piece
    except ConnectionResetError:
        pass
    return got


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def headers(fields: Sequence[tuple[str, str]]) -> bytes:
    """A block of headers, none of them indexed or compressed; each name and value under 127 bytes."""
    return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields)


def grpc_headers(method: str, *more: tuple[str, str]) -> bytes:
    """The block of headers of a gRPC call."""
    fixed = [(":method", "POST"), (":scheme", "http"), (":path", f"/{method}"), (":authority", "localhost")]
    return headers([*fixed, ("content-type", "application/grpc"), ("te", "trailers"), *more])


def message(data: bytes, *, compressed: bool = False) -> bytes:
    """A message as gRPC frames it."""
    return bytes([compressed]) + len(data).to_bytes(4, "big") + data


@dataclass
class Http2:
    """A connection that speaks HTTP/2. `window` is how many bytes of each reply the other side may send."""

    url: str
    window: int = 65_535
    connection: socket.socket = field(init=False)
    _buffer: bytes = b""
    # How much the other side takes: in all, of each stream at first, and more of each stream.
    _room: int = 65_535
    _first_room: int = 65_535
    _more_room: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connection = connected(self.url)
        setting = INITIAL_WINDOW_SIZE.to_bytes(2, "big") + self.window.to_bytes(4, "big")
        self.send(PREFACE + frame(SETTINGS, payload=setting))

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.connection.sendall(data)

    def begin(self, stream: int, method: str, *more: tuple[str, str]) -> None:
        """Sends the headers of a call."""
        self.send(frame(HEADERS, END_HEADERS, stream, grpc_headers(method, *more)))

    def send_message(self, stream: int, data: bytes) -> bool:
        """Sends the whole of a call's one message as the other side takes it; tells whether it took all of it."""
        at = 0
        while at < len(data):
            room = min(self._room, self._first_room + self._more_room.get(stream, 0), 16_384)
            if room <= 0:
                found = self.next()
                if found is None or (found[2] == stream and found[0] in {HEADERS, RST_STREAM}):
                    return False
                continue
            piece, at = data[at : at + room], at + room
            self.send(frame(DATA, END_STREAM if at >= len(data) else 0, stream, piece))
            self._room -= len(piece)
            self._more_room[stream] = self._more_room.get(stream, 0) - len(piece)
        return True

    def _heed(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Answers what keeps the connection up, and learns how much the other side takes."""
        if kind in {SETTINGS, PING} and not flags & ACK:
            self.send(frame(kind, ACK, payload=payload if kind == PING else b""))
        for at in range(0, len(payload), 6) if kind == SETTINGS else ():
            if int.from_bytes(payload[at : at + 2], "big") == INITIAL_WINDOW_SIZE:
                self._first_room = int.from_bytes(payload[at + 2 : at + 6], "big")
        if kind == WINDOW_UPDATE and stream:
            self._more_room[stream] = self._more_room.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE:
            self._room += int.from_bytes(payload, "big")

    def next(self) -> tuple[int, int, int, bytes] | None:
        """The next frame as (kind, flags, stream, payload), those that keep the connection up answered; None at the end."""
        try:
            while True:
                size = int.from_bytes(self._buffer[:3], "big")
                if len(self._buffer) >= 9 + size:
                    data, self._buffer = self._buffer[: 9 + size], self._buffer[9 + size :]
                    kind, flags, stream, payload = data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:]
                    self._heed(kind, flags, stream, payload)
                    return kind, flags, stream, payload
                piece = self.connection.recv(65_536)
                if not piece:
                    return None
                self._buffer += piece
        except (ConnectionResetError, BrokenPipeError):
            return None

    def ended(self, stream: int) -> bytes | None:
        """Waits until a call has ended: with the last frame's payload, None where the connection is gone, b"" after a reset."""
        while (found := self.next()) is not None:
            kind, flags, of, payload = found
            if of == stream and kind == RST_STREAM:
                return b""
            if of == stream and kind in {DATA, HEADERS} and flags & END_STREAM:
                return payload
        return None

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()
