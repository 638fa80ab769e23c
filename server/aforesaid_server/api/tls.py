"""TLS of both ports: one certificate with its key, read at the start, so that a server with a wrong one does not begin.

No client certificates, and no reading again: who renews a certificate starts the service anew.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc


class TlsError(Exception):
    """The certificate or its key cannot be used; says why, for people."""


@dataclass(frozen=True, slots=True)
class Tls:
    """What a port needs to speak TLS: `context` for HTTP, `credentials` for gRPC."""

    context: ssl.SSLContext
    credentials: grpc.ServerCredentials


def open_tls(certificate: Path, key: Path) -> Tls:
    """Reads a certificate, with those between it and its CA behind it, and its key, both PEM. Raises TlsError."""
    chain, secret = _read("tls_certificate", certificate), _read("tls_key", key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        # gRPC would take both and then refuse every caller.
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(f"tls_key {key}: is not the key of tls_certificate {certificate}") from None
        raise TlsError(f"tls_certificate {certificate}, tls_key {key}: {_which(chain, secret)}") from None
    except _EncryptedKey:
        raise TlsError(f"tls_key {key}: is encrypted; a service that starts by itself needs one that is not") from None
    return Tls(context, grpc.ssl_server_credentials([(secret, chain)]))


class _EncryptedKey(Exception):
    """The key wants a password."""


def _no_password() -> str:
    """Is asked for a password, where OpenSSL would ask the terminal."""
    raise _EncryptedKey


def _read(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{setting} {path}: {os.strerror(error.errno or 0).lower()}") from None


def _which(chain: bytes, secret: bytes) -> str:
    if b"-----BEGIN CERTIFICATE-----" not in chain:
        return "the first holds no PEM certificate"
    return "the second holds no PEM private key" if b"PRIVATE KEY-----" not in secret else "cannot be read as PEM"
