"""What the core holds at a moment, for whoever watches it: read from memory and from the sizes of files, never from the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aforesaid_server.audit import Audit
from aforesaid_server.folder import STORE
from aforesaid_server.index.live import LiveIndex
from aforesaid_server.ingest.follower import Follower


@dataclass(frozen=True, slots=True)
class Figures:
    """Sizes are bytes on the disk. What is not known is None, as the documents are while an index is built."""

    ready: bool = False
    built: float = 0.0
    """The share of the change log that an index that is opened or built holds; 1 once searches are answered."""
    changes_behind: int = 0
    seconds_behind: float = 0.0
    documents: int | None = None
    words: int | None = None
    index_bytes: int | None = None
    store_bytes: int | None = None
    audit_records: int = 0
    audit_failures: int = 0


def figures(data: Path, live: LiveIndex, follower: Follower, audit: Audit, *, shared: bool = False) -> Figures:
    """Returns the figures of now; of a shared store only its server knows the size."""
    progress, held = follower.progress, follower.held
    behind, waited = live.behind()
    if not progress.ready:
        # Of what was written before the start only the follower knows.
        behind = max(behind, progress.of - progress.done)
    return Figures(
        ready=progress.ready,
        built=1.0 if progress.ready else progress.done / progress.of if progress.of else 0.0,
        changes_behind=behind,
        seconds_behind=waited,
        documents=held[0] if held else None,
        words=held[1] if held else None,
        index_bytes=sum(_sizes(data / "index")) + sum(_sizes(data / "index.building")),
        store_bytes=None if shared else sum(_sizes(data, STORE)),
        audit_records=audit.records,
        audit_failures=audit.failures,
    )


def _sizes(folder: Path, beginning: str = "") -> Iterator[int]:
    """Yields the sizes of the files in a folder and those below; what goes away meanwhile, as in a merge, counts nothing."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(beginning):
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(Path(entry.path))
            else:
                yield entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
