"""What the program writes around a prompt, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.formats.codex_prompts import Prompt, split
from tests.text.effort import examples

ENVIRONMENT = "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>"
AGENTS = "# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"
AROUND = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: src/a.py\n\n## My request for Codex:\n"


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("fix it", Prompt("fix it")),
        (" fix\n", Prompt(" fix\n")),
        ("", Prompt("")),
        (" \n", Prompt("")),
        (ENVIRONMENT, Prompt("", "", ("environment_context",))),
        (ENVIRONMENT.upper(), Prompt("", "", ("environment_context",))),
        (f"\n{ENVIRONMENT}\n\nfix it", Prompt("fix it", "", ("environment_context",))),
        (AGENTS, Prompt("", "", ("AGENTS.md",))),
        (f"{AGENTS}\n\n{ENVIRONMENT}\nfix it", Prompt("fix it", "", ("AGENTS.md", "environment_context"))),
        ("# AGENTS.md instructions for /srv\n\nBe kind.", Prompt("", "", ("AGENTS.md",))),
        ("# AGENTS.md instructions for /srv\n\nBe kind.\n\n## My request for Codex:\nfix it", Prompt("fix it", "", ("AGENTS.md",))),
        ("<user_instructions>\n\nBe kind.\n\n</user_instructions>", Prompt("", "", ("user_instructions",))),
        ("<permissions instructions>\nx\n</permissions instructions>", Prompt("", "", ("permissions instructions",))),
        ('<codex_internal_context source="goal">\nx\n</codex_internal_context>', Prompt("", "", ("codex_internal_context",))),
        (AROUND + "fix it\n## My request\nagain", Prompt("fix it\n## My request\nagain", "", ("context of the editor",))),
        (
            "# Files mentioned by the user:\n\n## a.py\n\n## My request for Codex:\nfix",
            Prompt("fix", "", ("context of the editor",)),
        ),
        (f"{ENVIRONMENT}\n{AROUND}fix", Prompt("fix", "", ("environment_context", "context of the editor"))),
        ("<skill>\n<name>x</name>\n</skill>", Prompt("", "<skill>\n<name>x</name>\n</skill>")),
        (
            f"<turn_aborted>\nx\n</turn_aborted>{ENVIRONMENT}go",
            Prompt("go", "<turn_aborted>\nx\n</turn_aborted>", ("environment_context",)),
        ),
    ],
)
def test_a_text_is_taken_apart(text: str, prompt: Prompt) -> None:
    assert split(text) == prompt


@pytest.mark.parametrize(
    "text",
    [
        f"why is {ENVIRONMENT} in my log?",
        "the <permissions instructions> are wrong",
        "<environment_context> is never closed",
        "<environment> of mine </environment>",
        "</environment_context>",
        "# AGENTS.md\nwrite one",
        "# AGENTS.md instructions should be shorter",
        "# AGENTS.md instructions for the shop are wrong",
        "# My plan\n\n## My request for Codex:\nfix it",
        "# Context from my IDE setup: what is it?\n## My request",
        "# Context from my IDE setup:\n\nwithout a request",
        "please:\n" + AGENTS,
        "please:\n" + AROUND,
    ],
)
def test_a_message_that_holds_a_mark_is_whole(text: str) -> None:
    assert split(text) == Prompt(text)


pieces = st.sampled_from(
    [ENVIRONMENT, AGENTS, AROUND, "<skill>s</skill>", "<skill>", "## My request\n", "said", "\n", " ", "<", "x" * 50]
)


@given(st.lists(pieces, max_size=6).map("".join))
@examples(300)
def test_what_is_said_is_the_end_of_the_text(text: str) -> None:
    prompt = split(text)
    assert text.endswith(prompt.said)
    assert prompt.said.strip() or not prompt.said
    if not prompt.dropped and not prompt.aside:
        assert prompt.said == text or not text.strip()
    assert split(prompt.said).said in prompt.said


@pytest.mark.parametrize("text", ["<skill>" * 20_000, "\n" * 100_000, "# AGENTS.md instructions for x\n" * 5_000, AROUND * 5_000])
def test_hostile_texts_end(text: str) -> None:
    assert text.endswith(split(text).said)
