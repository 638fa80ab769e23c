"""`aforesaid-server backup` and `restore`: a copy of the data folder while it is served, and back into an empty one."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from aforesaid_server.commands import folder_options, refuse
from aforesaid_server.settings import Folder

_ELSEWHERE = "the store is a PostgreSQL database: {}, and the files secret and audit.head with it; docs/backup.md tells how"


@click.command(short_help="Copy the data folder, also while a server serves it.")
@click.argument("target", type=click.Path(path_type=Path))
@folder_options
def backup(target: Path, folder: Folder) -> None:
    """Copy the data folder into the new folder TARGET, also while a server serves it.

    What was committed before the copy began is in it. TARGET holds the secret of the deployment and all that was said: keep it as
    safe as the data folder. The index is not copied: it is made again from the store.
    """
    from aforesaid_server.backup import BackupError, back_up

    if folder.store:
        refuse(_ELSEWHERE.format("copy it with pg_dump"))
    os.umask(0o077)
    try:
        made = back_up(folder.data, target.absolute(), datetime.now(UTC))
    except BackupError as error:
        refuse(str(error))
    click.echo(f"{target}: {made.turns} turns, {made.audit_records} audit records")


@click.command(short_help="Put a backup into a new data folder.")
@click.argument("source", metavar="BACKUP", type=click.Path(path_type=Path))
@folder_options
def restore(source: Path, folder: Folder) -> None:
    """Put the backup in the folder BACKUP into a data folder that is new or empty.

    Each file is compared with its sum first. The server that starts on it makes the index again: searches wait until it is there.
    """
    from aforesaid_server.backup import BackupError, checked, put_back
    from aforesaid_server.errors import StartError
    from aforesaid_server.folder import data_folder

    if folder.store:
        refuse(_ELSEWHERE.format("put a dump of it into a new one with psql"))
    os.umask(0o077)
    try:
        checked(source)  # before a folder is made
        with data_folder(folder.data):
            made = put_back(source, folder.data)
    except (BackupError, StartError) as error:
        refuse(str(error))
    click.echo(f"{folder.data}: {made.turns} turns, {made.audit_records} audit records, as of {made.made_at}")
