"""What the files of one run know of each other: who held a line first, and what lies around a session.

One such memory serves one run and is then let go; nothing of it is kept on disk.
"""

from __future__ import annotations

from pathlib import Path

from aforesaid.formats.codex_folders import Homes


class Replays:
    """Which lines the files read so far have held, so that a resumed or forked session's copy of one is known as a copy.

    The first file that holds a line owns it; reading the same file again finds its own lines its own. One entry takes about 150
    bytes. `homes` are the folders of Codex's sessions that were looked at.
    """

    def __init__(self) -> None:
        self.homes = Homes()
        self._owners: dict[bytes, int] = {}
        self._files: dict[Path, int] = {}

    def owns(self, path: Path, line: bytes) -> bool:
        """Says whether a file is the first to hold a line; makes it the owner where nobody is."""
        number = self._files.setdefault(path, len(self._files))
        return self._owners.setdefault(line, number) == number
