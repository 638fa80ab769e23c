"""`aforesaid-server health`: tells whether the server with these settings lives, for the health check of a container."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

import click

from aforesaid_server.commands import read_settings, refuse

SECONDS = 4.0
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - asked about, not listened on


@click.command(short_help="Ask the server of this environment whether it lives.")
def health() -> None:
    """Ask the server that has the settings of this environment whether it lives.

    Exit code 0 if it answers, 1 if it does not. Looks at /healthz on this machine; whether searches are answered is what
    /readyz tells.
    """
    settings = read_settings({})
    if settings.port == 0:
        refuse("port is 0: a server on a free port cannot be found by its settings")
    context = _trusting(settings.tls_certificate) if settings.tls_certificate else None
    host = settings.host if settings.host not in EVERY_ADDRESS else "localhost"
    connection = (
        http.client.HTTPSConnection(host, settings.port, timeout=SECONDS, context=context)
        if context
        else http.client.HTTPConnection(host, settings.port, timeout=SECONDS)
    )
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
        click.echo(f"aforesaid-server: port {settings.port}: {reason}", err=True)
        raise SystemExit(1) from None
    finally:
        connection.close()
    if status != http.client.OK:
        click.echo(f"aforesaid-server: port {settings.port}: /healthz answers {status}", err=True)
        raise SystemExit(1)


def _trusting(certificate: Path) -> ssl.SSLContext:
    """Returns a context that takes this very certificate, whatever name it is for: the server asks itself."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
