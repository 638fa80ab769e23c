"""What a deployment sets: read once from flags and the environment (`AFORESAID_*`), then frozen."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Self

import Stemmer
from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("json", "text")


def is_loopback(host: str) -> bool:
    """Tells whether a host name or address, without a port, is this machine's own."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class Folder(BaseSettings):
    """Where the data lies, which is all that a command beside the server needs to know, whatever else is set."""

    model_config = SettingsConfigDict(env_prefix="AFORESAID_", frozen=True, extra="forbid")

    data: Path = Field(default=Path("aforesaid-data"), description="The folder that holds the store, the index and the keys.")
    store: SecretStr = Field(
        default=SecretStr(""),
        description="The address of a PostgreSQL database that holds the store, postgresql://user:password@host/database; "
        "a SQLite file in the data folder unless set.",
    )


class Settings(Folder):
    """Every setting with its default; the environment variable is the name in capitals after `AFORESAID_`."""

    auth: Literal["none", "token"] = Field(
        default="none", description="Who may call: none, whoever reaches the port, or token, who has a bearer token."
    )
    tls_certificate: Path | None = Field(
        default=None, description="The PEM file with the certificate of both ports, those between it and its CA behind it."
    )
    tls_key: Path | None = Field(default=None, description="The PEM file with the key of the certificate.")
    allow_plaintext: bool = Field(
        default=False, description="Whether tokens may travel without TLS beyond this machine, as behind a proxy that ends it."
    )
    host: str = Field(
        default="127.0.0.1", description="The address that both ports listen on. Only loopback is served without tokens."
    )
    port: int = Field(default=8787, ge=0, le=65535, description="The port of Connect, gRPC-Web and health; 0 takes a free one.")
    grpc_port: int = Field(default=8788, ge=0, le=65535, description="The port of gRPC; 0 takes a free one.")
    language: str = Field(
        default="english", description="The Snowball stemmer that words are stemmed with; another one rebuilds the index."
    )
    readers: frozenset[str] = Field(
        default=frozenset({"implementer", "reviewer", "orchestrator"}), description="The roles whose agents may read other agents."
    )
    allowed_origins: frozenset[str] = Field(default=frozenset(), description="Origins of web pages that may call the service.")
    allowed_hosts: frozenset[str] = Field(
        default=frozenset(), description="Names that the HTTP port answers to where tokens are demanded; all, unless set."
    )
    index_reasoning: bool = Field(default=False, description="Whether reasoning is searched.")
    index_system: bool = Field(default=False, description="Whether system turns are searched.")
    search_tools: frozenset[str] = Field(
        default=frozenset(),
        description="Names of further search tools, whose calls and results searches leave out; others rebuild the index.",
    )
    audit_query_text: bool = Field(
        default=False, description="Whether the audit log keeps the text of queries beside their keyed hash."
    )
    drain_seconds: float = Field(default=20.0, gt=0, description="How long calls in flight may go on after SIGTERM.")
    max_request_bytes: int = Field(
        default=32 * 1024 * 1024, gt=0, description="The size of one message, in bytes after decompression."
    )
    patience_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long a caller may take to send a request, or the next message of a stream, and to read its reply.",
    )
    max_calls: int = Field(default=2_000, gt=0, description="How many calls may be in flight; those above are told to ask again.")
    log_level: str = Field(default="info", description="The least level that is logged: debug, info, warning or error.")
    log_format: str = Field(
        default="json", description="How the log is written: json, one object a line, or text, for a person at a terminal."
    )
    metrics_port: int | None = Field(
        default=None, ge=0, le=65535, description="The port of metrics for Prometheus; 0 takes a free one. Off unless set."
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that the port of metrics listens on.")
    tracing: bool = Field(
        default=False, description="Whether OpenTelemetry traces are sent, to where OTEL_EXPORTER_OTLP_ENDPOINT says."
    )

    @field_validator("host")
    @classmethod
    def _not_unguarded(cls, host: str, info: ValidationInfo) -> str:
        if is_loopback(host):
            return host
        if info.data.get("auth") == "none":
            raise ValueError(f"host {host} is not a loopback address: without tokens the service is for this machine only")
        if not host:
            raise ValueError("host is empty: 0.0.0.0 or :: is every address of this machine")
        if info.data.get("tls_certificate") is None and not info.data.get("allow_plaintext"):
            raise ValueError(
                f"host {host} is not a loopback address: tokens would travel in clear; name tls_certificate and tls_key, "
                "or allow_plaintext where a proxy in front ends TLS"
            )
        return host

    @field_validator("language")
    @classmethod
    def _only_stemmed(cls, language: str) -> str:
        try:
            Stemmer.Stemmer(language)
        except KeyError:
            raise ValueError(f"language {language} has no Snowball stemmer; there are {', '.join(Stemmer.algorithms())}") from None
        return language

    @field_validator("search_tools")
    @classmethod
    def _no_empty_name(cls, names: frozenset[str]) -> frozenset[str]:
        if "" in names:
            raise ValueError("search_tools holds an empty name, and every name of a tool ends with that")
        return names

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        return _one_of("log level", level, LOG_LEVELS)

    @field_validator("log_format")
    @classmethod
    def _known_format(cls, log_format: str) -> str:
        return _one_of("log format", log_format, LOG_FORMATS)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key are given together or not at all")
        if self.allowed_hosts and self.auth == "none":
            raise ValueError("allowed_hosts needs auth token: without tokens only loopback names are answered to")
        return self

    @model_validator(mode="after")
    def _two_ports(self) -> Self:
        if self.port == self.grpc_port != 0:
            raise ValueError(f"both ports are the same: {self.port}")
        if self.metrics_port and self.metrics_port in {self.port, self.grpc_port}:
            raise ValueError(f"the port of metrics is one of the service's: {self.metrics_port}")
        return self


def _one_of(name: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise ValueError(f"{name} {given} is none of {', '.join(known)}")
    return given
