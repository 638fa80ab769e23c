"""Files that agents leave behind -> conversations: the public face of the formats.

`find_files` lists what lies under some paths and tells the format of each file by its content; `read_file` reads one of them,
chunk by chunk, in bounded memory, and reports what became of every line. Nothing here knows the wire, a server or an index,
writes anything, or opens a file that was not found or does not belong to one that was. One file per format: claude_code.py (with
claude_prompts.py and claude_folders.py), codex.py (with the other codex_*.py) and chat_messages.py.

    replays = Replays()
    for found in find_files(["~/.claude", "~/.codex"]):
        if not found.why:
            reading = read_file(found, replays=replays)
            for chunk in reading:
                send(chunk.agent, chunk.conversation)
            tell(reading.report)

Reading a file again gives the same chunks with the same ids. A file that is still being written is read up to its last whole
line; the rest is counted as `incomplete last line` and comes with the next reading.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from aforesaid.formats import chat_messages, claude_code, codex
from aforesaid.formats.chat_messages import Chat
from aforesaid.formats.finding import FoundFile, PathError, find_files
from aforesaid.formats.lines import BLOCK_BYTES, LINE_LIMIT, read_blocks, read_lines
from aforesaid.formats.packed import is_packed, unpack
from aforesaid.formats.replays import Replays
from aforesaid.formats.tally import CHUNK_BYTES, TURN_BYTES, WITHOUT_TEXT, Chunk, Report, Tally

__all__ = [
    "BLOCK_BYTES",
    "CHUNK_BYTES",
    "Chunk",
    "FileReading",
    "FoundFile",
    "LINE_LIMIT",
    "PathError",
    "Replays",
    "Report",
    "TURN_BYTES",
    "WITHOUT_TEXT",
    "find_files",
    "read_file",
]


def read_file(
    found: FoundFile,
    *,
    replays: Replays | None = None,
    on_bytes: Callable[[int], None] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> FileReading:
    """Prepares to read a file; nothing is opened before the answer is iterated. Raises ValueError for a file that was found
    unreadable.

    `replays` is shared by the files of one run, so that copies of earlier lines are known. `on_bytes` is called with the number
    of bytes that were worked on since the last call; the numbers add up to the file's size. A chunk holds at most `chunk_bytes`
    of text, or one turn. `block_bytes` are read at a time; what comes out does not depend on it.
    """
    if found.why or not found.format:
        raise ValueError(f"not a file to read: {str(found.path)!r} ({found.why or 'no format'})")
    return FileReading(found, replays or Replays(), on_bytes, chunk_bytes, block_bytes)


class FileReading:
    """One file while it is read: iterate it for the chunks, in the order of the file; then `report` is whole.

    Iterating again reads the file again. An OSError of the file comes through.
    """

    def __init__(
        self, found: FoundFile, replays: Replays, on_bytes: Callable[[int], None] | None, chunk_bytes: int, block_bytes: int
    ) -> None:
        self._found = found
        self._replays = replays
        self._on_bytes = on_bytes
        self._chunk_bytes = chunk_bytes
        self._block_bytes = block_bytes
        self._tally = Tally()

    def __iter__(self) -> Iterator[Chunk]:
        found, tally = self._found, Tally()
        self._tally = tally
        with found.path.open("rb") as file:
            modified_at = os.fstat(file.fileno()).st_mtime_ns // 1000
            blocks = read_blocks(file, self._block_bytes, self._on_bytes)
            if found.format == codex.NAME:
                packed = is_packed(file.peek(4)[:4])
                stopped: list[str] = []
                lines = read_lines(unpack(blocks, stopped.append) if packed else blocks)
                yield from codex.read(found.path, lines, tally, modified_at, self._replays.homes, self._chunk_bytes)
                for why in stopped:
                    tally.skip(why)
                return
            if found.format == claude_code.NAME:
                yield from claude_code.read(found.path, read_lines(blocks), tally, modified_at, self._replays, self._chunk_bytes)
                return
            chat = Chat(found.path, modified_at)
            if found.document:
                yield from chat_messages.read_document(chat, b"".join(blocks), tally, self._chunk_bytes)
            else:
                yield from chat_messages.read(chat, read_lines(blocks), tally, self._chunk_bytes)

    @property
    def report(self) -> Report:
        """What became of the lines read so far."""
        return self._tally.report()
