"""`aforesaid-server backup` and `restore`: a copy of the data folder while it is served, and back into an empty one."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from aforesaid_server.commands import folder_of, refuse
from aforesaid_server.commands.owner import data_option


@click.command(short_help="Copy the data folder, also while a server serves it.")
@click.argument("target", type=click.Path(path_type=Path))
@data_option
def backup(target: Path, data: Path | None) -> None:
    """Copy the data folder into the new folder TARGET, also while a server serves it.

    What was committed before the copy began is in it. TARGET holds the secret of the deployment and all that was said: keep it as
    safe as the data folder. The index is not copied: it is made again from the store.
    """
    from aforesaid_server.backup import BackupError, back_up

    folder = folder_of(data)
    os.umask(0o077)
    try:
        made = back_up(folder, target.absolute(), datetime.now(UTC))
    except BackupError as error:
        refuse(str(error))
    click.echo(f"{target}: {made.turns} turns, {made.audit_records} audit records")


@click.command(short_help="Put a backup into a new data folder.")
@click.argument("source", metavar="BACKUP", type=click.Path(path_type=Path))
@data_option
def restore(source: Path, data: Path | None) -> None:
    """Put the backup in the folder BACKUP into a data folder that is new or empty.

    Each file is compared with its sum first. The server that starts on it makes the index again: searches wait until it is there.
    """
    from aforesaid_server.backup import BackupError, checked, put_back
    from aforesaid_server.errors import StartError
    from aforesaid_server.folder import data_folder

    folder = folder_of(data)
    os.umask(0o077)
    try:
        checked(source)  # before a folder is made
        with data_folder(folder):
            made = put_back(source, folder)
    except (BackupError, StartError) as error:
        refuse(str(error))
    click.echo(f"{folder}: {made.turns} turns, {made.audit_records} audit records, as of {made.made_at}")
