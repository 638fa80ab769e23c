"""`make docs`: writes what can be derived into docs/: the page of settings, and the table of metrics in docs/monitoring.md.

A setting says what it does where it is declared; here is only in which group it stands. `--check` changes nothing and tells whether
the pages are up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from aforesaid._config import SETTINGS
from aforesaid_server.api.figures import Figures
from aforesaid_server.api.metrics import new_registry
from aforesaid_server.commands import flags_of, shown
from aforesaid_server.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = ROOT / "docs" / "configuration.md"
MONITORING = ROOT / "docs" / "monitoring.md"
BEGIN, END = "<!-- metrics: written by `make docs` -->", "<!-- end of metrics -->"

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Where it listens", ("host", "port", "grpc_port", "allowed_hosts", "allowed_origins")),
    ("Who may call, and read", ("auth", "tls_certificate", "tls_key", "allow_plaintext", "readers")),
    (
        "What is kept and searched",
        ("data", "store", "language", "index_reasoning", "index_system", "search_tools", "audit_query_text"),
    ),
    ("Limits", ("max_request_bytes", "max_calls", "patience_seconds", "drain_seconds")),
    ("What is seen from outside", ("log_level", "log_format", "metrics_port", "metrics_host", "tracing")),
)

HEAD = """# Configuration

This page is written by `make docs` from where the settings are declared; `make check` fails when it is out of date.

## The service

Each setting of `aforesaid-server serve` is a flag and a variable of the environment. A flag goes before the variable, the variable
before the default. All are read once, at the start; one that cannot be ends the program with exit code 2 and a line that says why.
There is no file of settings: a systemd unit or a container has its environment. A list is JSON in the environment
(`AFORESAID_READERS='["reviewer"]'`), and a flag given several times.
"""

CLIENT = """
## The command line and the Python client

Settings of `aforesaid` and of the library. A flag goes before the variable, the variable before the file
`aforesaid/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`, the file before the default.
"""

TRACES = """
## OpenTelemetry

With `AFORESAID_TRACING=true`, where traces go and how many is said by OpenTelemetry's own variables, among them
`OTEL_EXPORTER_OTLP_ENDPOINT` (`http://localhost:4318` unless set), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME` (`aforesaid`),
`OTEL_TRACES_SAMPLER` and `OTEL_RESOURCE_ATTRIBUTES`. [monitoring.md](monitoring.md) says what is in them.
"""


class NoGroup(Exception):
    """A setting that stands in no group, or a group that names none."""


def main(arguments: list[str]) -> int:
    """Writes the pages, or tells with `--check` which of them are out of date and returns 1."""
    pages = {CONFIGURATION: configuration(), MONITORING: monitoring(MONITORING.read_text("utf-8"))}
    stale = [page for page, text in pages.items() if not page.exists() or page.read_text("utf-8") != text]
    if "--check" in arguments:
        for page in stale:
            print(
                f"write_docs: {page.relative_to(ROOT)} is not up to date: run `make docs` and commit what it writes",
                file=sys.stderr,
            )
        return 1 if stale else 0
    for page in stale:
        page.write_text(pages[page], "utf-8")
        print(f"wrote {page.relative_to(ROOT)}")
    return 0


# Settings


def configuration() -> str:
    """Returns the page of settings. Raises NoGroup."""
    grouped = [name for _, names in GROUPS for name in names]
    if wrong := sorted(set(Settings.model_fields) ^ set(grouped)):
        raise NoGroup(f"scripts/write_docs.py: GROUPS and settings.py differ in {', '.join(wrong)}")
    parts = [HEAD]
    for title, names in GROUPS:
        rows = [_setting(name, Settings.model_fields[name]) for name in names]
        parts += [f"\n### {title}\n\n", *_table(("Variable", "Flag", "Value", "Default", "What it does"), rows)]
    parts += [
        CLIENT,
        "\n",
        *_table(("Variable", "Flag", "Value", "Default", "What it does"), map(_client_setting, SETTINGS)),
        TRACES,
    ]
    return "".join(parts)


def _setting(name: str, field: FieldInfo) -> tuple[str, ...]:
    flags = flags_of(name, field.default).replace("/", "`, `")
    return f"`AFORESAID_{name.upper()}`", f"`{flags}`", _value(name, field), _code(shown(field.default)), field.description or ""


def _value(name: str, field: FieldInfo) -> str:
    kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not type(None)]
    if name.endswith(("_seconds", "_bytes")):
        return name.rpartition("_")[2]
    if isinstance(field.default, frozenset):
        return "list"
    if kinds[0] in _VALUES:
        return _VALUES[kinds[0]]
    return " or ".join(f"`{kind}`" for kind in kinds)


_VALUES: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
    SecretStr: "address",
}


def _client_setting(setting: Any) -> tuple[str, ...]:
    return f"`{setting.variable}`", f"`{setting.flag}`", setting.placeholder.lower(), _code(setting.default or "none"), setting.help


def _code(text: str) -> str:
    return text if text == "none" else f"`{text}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |\n"


# Metrics


def monitoring(page: str) -> str:
    """Returns the page of monitoring with the table of metrics of now."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"docs/monitoring.md: the lines {BEGIN} and {END} are not there")
    return "".join((before, BEGIN, "\n", *_table(("Metric", "Kind", "Labels", "What it tells"), metrics()), END, after))


def metrics() -> Iterator[tuple[str, str, str, str]]:
    """Yields a row for each metric of ours: those that begin with process_ and python_ are the library's."""
    known = Figures(documents=0, words=0, index_bytes=0, store_bytes=0)
    registry, calls = new_registry(lambda: 0, lambda: known)
    calls.ended("SearchTranscripts", "connect", "ok", 0.0)
    for family in registry.collect():
        if not family.name.startswith("aforesaid_"):
            continue
        name = f"{family.name}{_SUFFIXES.get(family.type, '')}"
        labels = dict.fromkeys(label for sample in family.samples for label in sample.labels if label != "le")
        yield f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), family.documentation


_SUFFIXES = {"counter": "_total", "info": "_info"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
