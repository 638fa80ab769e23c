"""What a deployment sets: read once from flags and the environment (`AFORESAID_*`), then frozen."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Self

import Stemmer
from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


def is_loopback(host: str) -> bool:
    """Tells whether a host name or address, without a port, is this machine's own."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class Settings(BaseSettings):
    """Every setting with its default; the environment variable is the name in capitals after `AFORESAID_`."""

    model_config = SettingsConfigDict(env_prefix="AFORESAID_", frozen=True, extra="forbid")

    data: Path = Field(default=Path("aforesaid-data"), description="The folder that holds the store, the index and the keys.")
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
    index_reasoning: bool = Field(default=False, description="Whether reasoning is searched.")
    index_system: bool = Field(default=False, description="Whether system turns are searched.")
    audit_query_text: bool = Field(
        default=False, description="Whether the audit log keeps the text of queries beside their keyed hash."
    )
    drain_seconds: float = Field(default=20.0, gt=0, description="How long calls in flight may go on after SIGTERM.")
    max_request_bytes: int = Field(
        default=32 * 1024 * 1024, gt=0, description="The size of one message, in bytes after decompression."
    )
    log_level: str = Field(default="info", description="The least level that is logged: debug, info, warning or error.")

    @field_validator("host")
    @classmethod
    def _only_loopback(cls, host: str) -> str:
        if not is_loopback(host):
            raise ValueError(f"host {host} is not a loopback address: without tokens the service is for this machine only")
        return host

    @field_validator("language")
    @classmethod
    def _only_stemmed(cls, language: str) -> str:
        try:
            Stemmer.Stemmer(language)
        except KeyError:
            raise ValueError(f"language {language} has no Snowball stemmer; there are {', '.join(Stemmer.algorithms())}") from None
        return language

    @model_validator(mode="after")
    def _two_ports(self) -> Self:
        if self.port == self.grpc_port != 0:
            raise ValueError(f"both ports are the same: {self.port}")
        return self
