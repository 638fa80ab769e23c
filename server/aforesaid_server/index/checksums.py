"""Whether the files of a tantivy index are as they were written: each ends with a checksum, which tantivy itself never reads.

tantivy maps its files into memory and trusts them. A changed byte gives wrong lists without a word, and a page that the disk cannot
read, or that is no longer there, ends the process; so whoever opens an index after an end that was none reads it whole first.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

_MAGIC = 1337
_ENDING = 8  # the length of the footer before it, and the magic number, four bytes each, the low byte first
_AT_ONCE = 1024 * 1024


def unsound_file(folder: Path) -> Path | None:
    """Returns a file of the index in this folder that is not as it was written, None if all are. About a second for a gibibyte.

    Looks at what the last commit holds; what a commit that did not come to its end has left is nobody's. Raises OSError,
    ValueError, KeyError or TypeError for what cannot be read.
    """
    for path in _committed(folder):
        if not _is_sound(path):
            return path
    return None


def _committed(folder: Path) -> Iterator[Path]:
    """Yields the files of the segments that meta.json names."""
    segments = json.loads((folder / "meta.json").read_bytes())["segments"]
    for segment in segments:
        name, deletes = segment["segment_id"].replace("-", ""), segment["deletes"]
        # The last commit's deletions; those of a later one may lie beside.
        deleted = f"{name}.{deletes['opstamp']}.del" if deletes else ""
        for path in sorted(folder.glob(f"{name}.*")):
            if path.suffix != ".del" or path.name == deleted:
                yield path


def _is_sound(path: Path) -> bool:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _ENDING))
        ending = file.read()
        length = int.from_bytes(ending[:4], "little")
        start = size - _ENDING - length
        if int.from_bytes(ending[4:], "little") != _MAGIC or start < 0:
            return False
        file.seek(start)
        footer = json.loads(file.read(length))
        file.seek(0)
        left, found = start, 0
        while left > 0 and (piece := file.read(min(left, _AT_ONCE))):
            found, left = zlib.crc32(piece, found), left - len(piece)
    return left == 0 and found == footer["crc"]
