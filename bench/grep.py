"""The texts as files, and the program that people search files with: ripgrep where it is, else grep.

A file for each conversation, a line for each turn, its own line ends escaped as in JSON. The program counts the lines that hold the
letters, case aside, and prints none of them, which is the least that it can do.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bench.corpus import CorpusTurn

# In the order of preference; what follows are the flags for fixed letters, any case, and counts alone.
PROGRAMS = {
    "rg": ("--fixed-strings", "--ignore-case", "--count", "--no-filename", "--no-ignore", "--no-config", "--text"),
    "grep": ("--fixed-strings", "--ignore-case", "--count", "--no-filename", "--recursive", "--text"),
}


@dataclass(frozen=True, slots=True)
class Grep:
    """A folder with the texts, and the program that searches it."""

    folder: Path
    program: str

    @property
    def name(self) -> str:
        """The program's name, for the report."""
        return "ripgrep" if self.program == "rg" else self.program

    def add(self, turns: Iterable[CorpusTurn]) -> None:
        """Writes turns to the files of their conversations."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for conversation_id, said in groupby(turns, key=lambda turn: turn.conversation_id):
            with (self.folder / f"{conversation_id}.txt").open("a", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line(turn.text)}\n" for turn in said)

    def count(self, letters: str) -> int:
        """Counts the turns that hold these letters. Raises CalledProcessError where the program fails."""
        command = [self.program, *PROGRAMS[self.program], "--", letters, str(self.folder)]
        # Without a locale grep takes letters beyond ASCII for bytes.
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False)
        if done.returncode > 1:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return sum(map(int, done.stdout.split()))

    def version(self) -> str:
        """Tells name and version of the program."""
        done = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0]


def installed() -> str:
    """Names the program that is on this machine; raises LookupError where there is none."""
    for program in PROGRAMS:
        if shutil.which(program):
            return program
    raise LookupError(f"none of {', '.join(PROGRAMS)} is on this machine")


def children_clock() -> int:
    """Tells the CPU time of all programs that this process started and that have ended, in nanoseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def line(text: str) -> str:
    """Writes a text on one line, as JSON would."""
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")
