"""docs/transcript-tool.md: all of its programs and commands are run by tests/test_docs.py."""

from __future__ import annotations

import json
import subprocess
import sys

from openai.types.responses import FunctionTool

from scripts.running_server import ROOT
from tests.test_docs import FENCE, MARK

PAGE = ROOT / "docs" / "transcript-tool.md"


def test_every_example_of_the_page_is_checked() -> None:
    text = PAGE.read_text("utf-8")
    shown = [fence for fence in FENCE.finditer(text) if fence["kind"] in {"python", "console"}]
    marked = [fence for fence in shown if text[: fence.start()].endswith(f"{MARK}\n")]
    assert len(marked) == len(shown) > 5


def test_the_example_prints_the_tool() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "past_chats.py"], capture_output=True, text=True, timeout=60, check=True
    )
    assert FunctionTool.model_validate(json.loads(done.stdout)).name == "past_chats"
