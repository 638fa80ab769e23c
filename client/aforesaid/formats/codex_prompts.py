"""What of a message in a Codex session a person said, and what the program wrote around it.

The program puts its own text into messages of the user and of the developer: the environment, the project's AGENTS.md, permissions,
goals; alone, or in front of a real prompt. `split` takes such text apart from the prompt. It is known by a tag that is opened and
closed, or by a heading that only the program writes, at the very start: a message that merely holds one somewhere is the person's,
whole. What is the same in every session is dropped, and named; what tells of something that happened (a command that the person
ran, a skill, a turn that was broken off) is kept as an aside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DROPPED = (
    "apps_instructions",
    "codex_internal_context",
    "collaboration_mode",
    "environment_context",
    "environments",
    "goal_context",
    "model_switch",
    "multi_agent_mode",
    "permissions instructions",
    "personality_spec",
    "plugins_instructions",
    "realtime_conversation",
    "skills_instructions",
    "token_budget",
    "user_instructions",
)
_ASIDES = (
    "hook_prompt",
    "skill",
    "subagent_notification",
    "subagents",
    "turn_aborted",
    "user_action",
    "user_shell_command",
)
_TAGGED = re.compile(
    rf"\s*<({'|'.join(map(re.escape, (*_DROPPED, *_ASIDES)))})(?:\s[^<>]*)?>.*?</\1>\s*", re.DOTALL | re.IGNORECASE
)
_INSTRUCTIONS = re.compile(
    r"\s*# AGENTS\.md instructions\b(?:[^\n]*\n\s*<INSTRUCTIONS>.*?</INSTRUCTIONS>\s*| for [^\n]+\n.*\Z)", re.DOTALL | re.IGNORECASE
)
# Above a prompt that was typed into an editor's window or the desktop application.
_AROUND = re.compile(
    r"\s*# (?:Context from my IDE setup|(?:Files|Applications) mentioned by the user|In app browser)\b[^\n]*:\s*\n"
)
_REQUEST = re.compile(r"^## My request\b[^\n]*\n?", re.MULTILINE)
_PICTURE = re.compile(r"\s*(?:<image(?:\s[^<>]*)?>|</image>)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text of a message: what was said, what is kept beside it, and the names of what was dropped."""

    said: str
    aside: str = ""
    dropped: tuple[str, ...] = ()


def split(text: str) -> Prompt:
    """Splits a text; without anything of the program's it is all said."""
    dropped: list[str] = []
    asides: list[str] = []
    end = 0
    while True:
        if found := _TAGGED.match(text, end):
            name = found[1].lower()
            if name in _ASIDES:
                asides.append(found[0].strip())
            else:
                dropped.append(name)
        elif found := _INSTRUCTIONS.match(text, end):
            dropped.append("AGENTS.md")
            if request := _REQUEST.search(found[0]):
                return Prompt(text[end + request.end() :].lstrip("\n"), "\n".join(asides), tuple(dropped))
        else:
            break
        end = found.end()
    if (around := _AROUND.match(text, end)) and (request := _REQUEST.search(text, around.end())):
        dropped.append("context of the editor")
        end = request.end()
    said = text[end:] if end else text
    return Prompt(said if said.strip() else "", "\n".join(asides), tuple(dropped))


def is_picture_tag(text: str) -> bool:
    """Says whether a text is only what the program writes around an image."""
    return _PICTURE.fullmatch(text) is not None
