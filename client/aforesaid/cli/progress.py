"""The bar that an import draws on a terminal, in bytes of its files; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aforesaid.cli.terminal import visible

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """Is told how far the work has come; draws nothing without `progress`. May be called from another thread."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("looking for files", total=None)

    def expect(self, size: int) -> None:
        """Says how many bytes there are in all."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=size)

    def begin(self, name: str) -> None:
        """Says which file is being read."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=visible(name))

    def advance(self, size: int) -> None:
        """Says that so many bytes more are done."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, size)


@contextmanager
def bar() -> Iterator[Bar]:
    """Draws a bar on stderr while the context lasts, and takes it away at its end."""
    if not sys.stderr.isatty():
        yield Bar()
        return
    # A tenth of a second to load: only for who sees it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress)
