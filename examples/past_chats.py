"""Answers a call of `past_chats`, as a model writes it, from the conversations in chats/.

python examples/past_chats.py '{"query": "valve 3"}'    answers
python examples/past_chats.py                           prints the tool as it is offered to OpenAI's Responses
"""

import json
import sys
from pathlib import Path

from aforesaid.conversation_stores import FileConversationStore
from aforesaid.tool_shapes import answered, for_openai_responses
from aforesaid.transcript_tool import transcript_search_tool

store = FileConversationStore(Path(__file__).parent / "chats")
tool = transcript_search_tool(store, max_results=5, snippet_chars=80, name="past_chats")

if len(sys.argv) > 1:
    text, is_error = answered(tool, sys.argv[1])
    print(text)
    sys.exit(is_error)
print(json.dumps(for_openai_responses(tool), indent=2))
