"""`aforesaid-server serve`: the service in the foreground."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from aforesaid_server.commands import given_settings, refuse, settings_options


@click.command()
@settings_options
@click.option(
    "--import",
    "imports",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Take the transcripts under this path (a file, a project folder, ~/.claude) while serving. May be given several times.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="Write this file (JSON: url, grpc, pid) once both ports listen and all is imported.",
)
def serve(imports: tuple[Path, ...], ready_file: Path | None, **given: Any) -> None:
    """Serve until SIGTERM or Ctrl-C, which let calls in flight end."""
    settings = given_settings(given)
    # gRPC's C core, which reads this when it is loaded, would write lines of its own between those of the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Loads the whole service, half a second of it: not for --help.
    from aforesaid_server import app
    from aforesaid_server.errors import StartError

    try:
        app.serve(settings, imports, ready_file)
    except StartError as error:
        refuse(str(error))
