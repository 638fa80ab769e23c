"""The tool over a dict or a folder needs neither the wire nor what knows graphemes until there is a hit."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from aforesaid.conversation_stores import DictConversationStore
from aforesaid.tool_shapes import for_mcp
from aforesaid.transcript_tool import transcript_search_tool

tool = transcript_search_tool(DictConversationStore({"c": [{"role": "user", "content": "hello"}]}))
print(tool.execute({"query": sys.argv[1]}))
print(*sorted({"connectrpc", "protobuf", "pyqwest", "regex", "pydantic", "mcp", "openai", "anthropic"} & set(sys.modules)))
"""


@pytest.mark.parametrize(("query", "expected"), [("bye", "no matches\n\n"), ("hello", "c#0 user: hello\nregex\n")])
def test_what_is_loaded(query: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, query], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")
