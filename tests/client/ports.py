"""Ports of this machine with something else than the service behind them, or nothing."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """Something at a port of this machine that sends `answer` to whoever calls and hangs up; None answers nothing and stays."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.append(connection)
                if answer is not None:
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        for connection in held:
            connection.close()


def refused_port() -> str:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def answering(*answers: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """A port that gives each connection the next answer, the last one again and again, and hangs up; with what it has heard."""
    heard: list[bytes] = []
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                try:
                    connection = tls.wrap_socket(connection, server_side=True) if tls else connection
                except OSError:  # whoever called does not trust the certificate
                    connection.close()
                    continue
                with connection:
                    request = b""
                    while not complete(request):
                        request += connection.recv(65536)
                    heard.append(request)
                    connection.sendall(answers[min(len(heard), len(answers)) - 1])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}", heard
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def complete(request: bytes) -> bool:
    """Tells whether a request has all its bytes, by its length or its last chunk."""
    head, found, body = request.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(found) and len(body) >= sum(lengths)


class Hanging:
    """A port that hears one request and does not answer; `asked` and `hung_up` are set from its thread."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.hung_up = threading.Event()
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._connection, _ = self._listener.accept()
        with closing(self._connection):
            self._connection.recv(65536)
            self.asked.set()
            while self._connection.recv(65536):
                pass
            self.hung_up.set()

    def hang_up(self) -> None:
        """Ends the connection from this side, once it was asked."""
        self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Lets the port go."""
        self._listener.close()
        self._thread.join(10)
