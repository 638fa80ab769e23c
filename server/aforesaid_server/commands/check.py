"""`aforesaid-server check`: whether a service does what it promises, or a data folder is whole. Exit code 0, 1 where something is
wrong, 2 where it cannot be asked.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from aforesaid_server.commands import folder_of, refuse
from aforesaid_server.settings import Folder


@click.command(short_help="Check a running service, or a data folder.")
@click.option("--url", envvar="AFORESAID_URL", help="The HTTP port of a service that runs.  [AFORESAID_URL; http://127.0.0.1:8787]")
@click.option("--grpc", metavar="HOST:PORT", help="Its gRPC port, to search there as well.")
@click.option("--as", "agent_id", default="", help="Check as this agent, in its own conversations, and not as a user or service.")
@click.option("--ca", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A file of certificates to trust.")
@click.option("--wait", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="How long the service may take to be ready.")
@click.option("--data", type=click.Path(path_type=Path), help="Check this data folder instead, which no server may use meanwhile.")
@click.option("--store", metavar="URL", help="With --data: the PostgreSQL database of its store.  [AFORESAID_STORE; none]")
def check(
    url: str | None, grpc: str | None, agent_id: str, ca: Path | None, wait: float, data: Path | None, store: str | None
) -> None:
    """Write a turn to a running service, find it, delete it; or check the data folder that --data names.

    The token of a user or service, where tokens are required, stands in AFORESAID_TOKEN. Each step is a line; the first that is
    wrong says what was expected and what came.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if data is not None:
        sys.exit(not _data(folder_of(data, store)))
    address = url or "http://127.0.0.1:8787"
    _refuse_address(address)
    from aforesaid_server.checks.service import Target, check_service

    token = os.environ.get("AFORESAID_TOKEN", "")
    target = Target(address, grpc or "", token, agent_id, ca, wait=wait)
    sys.exit(not check_service(target, click.echo))


def _refuse_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right:
        refuse(f"url {url} is no address such as http://127.0.0.1:8787")


def _data(folder: Folder) -> bool:
    if not folder.data.is_dir():
        refuse(f"data folder {folder.data}: no such folder")
    from aforesaid_server.checks.data import check_data
    from aforesaid_server.errors import StartError
    from aforesaid_server.folder import data_folder

    try:
        with data_folder(folder.data):
            return check_data(folder, click.echo)
    except StartError as error:
        refuse(f"{error}; check the service with --url" if "another server" in str(error) else str(error))
