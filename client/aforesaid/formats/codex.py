"""Codex: the folder that a session worked in is an agent, each session one of its conversations, each sub-agent an agent of its
own.

Known layouts: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl` and `archived_sessions/` under `~/.codex`, some of them compressed as
`.jsonl.zst`, and single files lying anywhere. A session is known by the id in its header, so that it stays the same conversation
when it is archived or compressed. A turn is known by its line, `line-7` for the eighth: such a file only grows.

Where both of the program's logs say a thing, the first line that says it gives the turn, and the copy is counted. Copies stand
close together; what was said twice is in each log twice, and stays. What a fork copied from its parent is the parent's, and is left
out (see codex_forks). What was rolled back is gone: its turns keep their place and say REMOVED, because an earlier import may have
brought what they said.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from aforesaid.formats.codex_events import repeats_items
from aforesaid.formats.codex_folders import PROMPTS_ALONE, TITLES_ALONE, Homes, glance, open_lines
from aforesaid.formats.codex_forks import own_from
from aforesaid.formats.codex_items import kind_of, read_line, speaks, unwrapped
from aforesaid.formats.codex_said import Said, dropped_from
from aforesaid.formats.lines import Line, take_line
from aforesaid.formats.tally import CHUNK_BYTES, WITHOUT_TEXT, Chunk, Tally, chunks, text_bytes
from aforesaid.formats.values import Object, as_object, microseconds, on_disk, string
from aforesaid.model import Conversation, Reasoning, Source, Text, Turn

__all__ = ["NAME", "REMOVED", "read", "speaks", "why_no_session"]

NAME = "codex"
REMOVED = "(rolled back)"
"""What a turn says that was removed from its conversation."""

COPIED = "copied from the session that it was forked from"
ECHO = "said in the other log as well"
ROLLED_BACK = "rolled back"

_ENDS = frozenset({"task_complete", "thread_rolled_back", "turn_aborted", "turn_complete"})


def why_no_session(value: object) -> str:
    """Why a file is none to read, where a line shows it to be one that lies beside the sessions; empty for any other line."""
    fields = as_object(value)
    if fields.keys() == {"session_id", "ts", "text"}:
        return PROMPTS_ALONE
    return TITLES_ALONE if fields.keys() == {"id", "thread_name", "updated_at"} else ""


def read(
    path: Path, lines: Iterable[Line], tally: Tally, modified_at: int, homes: Homes, limit: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Yields a file's turns; `modified_at`, in microseconds, is the time of turns before any line that has one."""
    known = glance(path)
    home = homes.of(path)
    header = known.header
    parent = home.sessions.get(header.parent_id)
    begins = own_from(path, header, parent if parent != path else None)
    removed = _removed(path) if known.was_rolled_back else []
    agent = header.agent
    conversation = Conversation(
        header.session_id or f"{on_disk(path.parent.name)}/{on_disk(path.name)}",
        agent.agent_id,
        home.titles.get(header.session_id) or known.title or header.task,
        source=Source(NAME, on_disk(str(path)), header.cwd),
    )
    session = _Session(begins, removed, tally, header.created_at or modified_at)
    for line in lines:
        session.read_line(line)
        if session.size >= limit:
            yield from chunks(agent, conversation, session.take(), tally, limit)
    yield from chunks(agent, conversation, session.take(), tally, limit)


def _removed(path: Path) -> list[range]:
    """The lines whose turns a later line takes back: found by reading the file once, without keeping anything of it."""
    session = _Session(0, [], Tally(), 1)
    for line in open_lines(path):
        session.read_line(line)
        session.take()
    return session.rolled_back


class _Session:
    """One file while it is read: its lines in, its turns out."""

    def __init__(self, begins: int, removed: list[range], tally: Tally, now: int) -> None:
        self.size = 0
        self.rolled_back: list[range] = []
        self._has_items = False
        self._begins = begins
        self._removed = removed
        self._tally = tally
        self._now = now
        self._turns: list[Turn] = []
        self._echoes = _Echoes()
        self._prompts: list[int] = []

    def take(self) -> list[Turn]:
        """The turns that were read since the last call."""
        turns, self._turns, self.size = self._turns, [], 0
        return turns

    def read_line(self, line: Line) -> None:
        """Takes one line in, or skips it with its reason."""
        take_line(line, self._tally, self._take)

    def _take(self, number: int, value: object) -> str:
        """Answers why a line is skipped; an empty string where it is taken."""
        if not isinstance(value, dict):
            return "not a JSON object"
        fields = as_object(value)
        kind, payload = unwrapped(fields)
        times = (fields.get("timestamp"), payload.get("timestamp"), fields.get("created_at"))
        self._now = next(filter(None, map(microseconds, times)), self._now)
        self._has_items = self._has_items or kind == "response_item"
        told = read_line(kind, payload, self._tally, events_alone=not self._has_items)
        said = [one for one in told if one.parts]
        new = [one for one in said if self._echoes.hear(one)]
        if any(one.role in {"user", "agent"} and one.log != "goal" for one in new):
            self._prompts.append(number)
        if kind == "session_meta" or string(payload.get("type")) in _ENDS:
            self._echoes.forget()
        if payload.get("type") == "thread_rolled_back":
            self._roll_back(number, payload)
        if said and number < self._begins:
            return COPIED
        if not new:
            return ECHO if said else self._why_nothing(kind, fields, payload)
        at = bisect_right(self._removed, number, key=lambda lines: lines.start)
        gone = at > 0 and number in self._removed[at - 1]
        for one in new:
            for name in one.dropped:
                self._tally.note(f"text of the program around a message left out: {name}")
            self._add(f"line-{number}#wrapper" if one.aside else f"line-{number}", one, gone=gone)
        return ROLLED_BACK if gone else ""

    def _why_nothing(self, kind: str, fields: Object, payload: Object) -> str:
        if kind == "event_msg" and repeats_items(payload) and self._has_items:
            return ECHO
        dropped = dropped_from(payload) if kind in {"event_msg", "response_item"} else ""
        return f"{dropped or kind_of(fields)}{WITHOUT_TEXT}"

    def _add(self, turn_id: str, said: Said, *, gone: bool) -> None:
        role, parts = ("system", (Text(REMOVED),)) if gone else (said.role, tuple(said.parts))
        turn = Turn(role, parts, turn_id, self._now)
        self._turns.append(turn)
        self.size += text_bytes(turn.parts)

    def _roll_back(self, number: int, payload: Object) -> None:
        """Takes the last prompts back, and all that came of them; what was taken back behind the first of them is part of that."""
        count = payload.get("num_turns")
        if not isinstance(count, int) or count <= 0 or not self._prompts:
            return
        first = self._prompts[max(0, len(self._prompts) - count)]
        del self._prompts[-count:]
        while self.rolled_back and self.rolled_back[-1].start > first:
            self.rolled_back.pop()
        self.rolled_back.append(range(first, number))


class _Echoes:
    """Knows what was said a moment ago in another log, so that each message comes once.

    Of each text it counts how often each log has said it: it was said as often as the log with the most of them says. What is the
    same later on is new: a prompt is forgotten when something came of it, everything else with the next prompt.
    """

    def __init__(self) -> None:
        self._prompts: dict[bytes, Counter[str]] = {}
        self._answers: dict[bytes, Counter[str]] = {}
        self._goals: set[bytes] = set()

    def hear(self, said: Said) -> bool:
        """Says whether this is new, and takes from it the thoughts that are not."""
        new = not said.log or self._is_new(said)
        if said.role == "user" and new:
            self._answers.clear()
        elif said.role not in {"system", "user"}:
            self._prompts.clear()
        return new

    def _is_new(self, said: Said) -> bool:
        if said.log == "goal":
            # It is written again whenever its state changes.
            known, self._goals = self._goals, self._goals | {_digest(piece) for piece in said.pieces()}
            return self._goals != known and self._count(said, said.pieces()[0])
        if said.parts and all(isinstance(part, Reasoning) for part in said.parts):
            said.parts = [part for part in said.parts if isinstance(part, Reasoning) and self._count(said, part.text)]
            return bool(said.parts)
        # Each piece is counted, whatever comes of the others.
        return sum(self._count(said, piece) for piece in said.pieces()) > 0

    def _count(self, said: Said, text: str) -> bool:
        heard = self._prompts if said.role == "user" else self._answers
        counts = heard.setdefault(_digest(f"{said.role}\0{text}"), Counter())
        most = max(counts.values(), default=0)
        counts[said.log] += 1
        return counts[said.log] > most

    def forget(self) -> None:
        """Forgets what may have a copy: a turn is over."""
        self._prompts.clear()
        self._answers.clear()


def _digest(text: str) -> bytes:
    """A text as it is known, without its blanks: the logs join the pieces of a message in different ways."""
    return hashlib.blake2b("".join(text.split()).encode("utf-8"), digest_size=16).digest()
