"""Certificates for tests: a CA of their own and what it signs. Made anew each time; no key lies in the repository."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate, its key, and the CA that signed it, as PEM files."""

    ca: Path
    certificate: Path
    key: Path


def signed(folder: Path, host: str = "localhost") -> Signed:
    """Makes a CA, and a certificate of it for a name and for 127.0.0.1."""
    folder.mkdir(parents=True, exist_ok=True)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    ca = _certificate(ca_name, ca_name, ca_key, ca_key, x509.BasicConstraints(ca=True, path_length=0))
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = _certificate(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), ca_name, key, ca_key, names)
    made = Signed(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")
    made.ca.write_bytes(ca.public_bytes(PEM))
    made.certificate.write_bytes(leaf.public_bytes(PEM))
    made.key.write_bytes(_as_pem(key, serialization.NoEncryption()))
    (folder / "encrypted.pem").write_bytes(_as_pem(key, serialization.BestAvailableEncryption(b"password")))
    return made


def _certificate(
    of: x509.Name,
    by: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signing: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(by, of, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(signing, hashes.SHA256())


def _as_pem(key: ec.EllipticCurvePrivateKey, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption)
