"""`make demo`: serves the examples on free ports from an empty folder, searches them with curl, shows the hits and who read whom.

Fails where a search finds nothing, so that it is also a check of the whole way from files to answers.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts import curl
from scripts.running_server import EXAMPLES, ROOT, RunningServer, ServerNotReady, start

LISTS = ("matches", "near", "partial")


@dataclass(frozen=True, slots=True)
class Search:
    """A search to show: who asks (empty for the user), the request, and the list that must hold something."""

    about: str
    caller: str
    body: dict[str, Any] = field(hash=False)
    finds: str = "matches"


SEARCHES = (
    Search("its own conversations and those of its sub-agent", "shop-implementer", {"query": "idempotency key"}),
    Search(
        "another agent's, the reviewer's, which goes into the audit log",
        "release-orchestrator",
        {"query": "blocking", "agentId": "shop-reviewer", "reason": "may 2.4.0 go out?"},
    ),
    Search("for letters that stand inside an identifier (near)", "shop-implementer", {"query": "backoff"}, "near"),
    Search("every agent for a phrase", "", {"query": '"race condition"'}),
    Search("every agent for a word that stands in sentences without blanks", "", {"query": "請求書"}),
)


def main() -> int:
    """Returns 0 when every search found what it should and the read was recorded, 130 after Ctrl-C."""
    try:
        return demonstrate()
    except KeyboardInterrupt:
        print("demo: interrupted, the service is stopped", file=sys.stderr)
        return 130


def demonstrate() -> int:
    """Starts the service, shows all and stops it, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="aforesaid-demo-") as folder:
        log = Path(folder) / "server.log"
        print(f"starting the service with the transcripts in {EXAMPLES.relative_to(ROOT)}/ ...", flush=True)
        try:
            server = start(Path(folder) / "data", imports=[EXAMPLES], log=log)
        except ServerNotReady as error:
            print(f"the service did not start: {error}", file=sys.stderr)
            return 1
        try:
            wrong = show_all(server)
        except curl.CallFailed as error:
            wrong = [f"{error}\n{server.told()}"]
        finally:
            code = server.stop()
        if code != 0:
            wrong.append(f"the service ended with exit code {code}\n{server.told()}")
    for line in wrong:
        print(f"demo: {line}", file=sys.stderr)
    return 1 if wrong else 0


def show_all(server: RunningServer) -> list[str]:
    """Runs the searches and lists the reads; returns what went wrong."""
    wrong = []
    for search in SEARCHES:
        answer = show(
            f"{search.caller or 'the user'} searches {search.about}",
            server,
            "AgentService/SearchTranscripts",
            search.body,
            search.caller,
        )
        for name in LISTS:
            for hit in answer.get(name, []):
                print(hit_line(name, hit))
        if answer.get("notice"):
            print(f"  notice: {answer['notice']}")
        if not answer.get(search.finds):
            wrong.append(f"nothing in {search.finds} for {search.body}")
    answer = show("the user asks who read whom", server, "AuditService/ListReads", {}, "")
    records = answer.get("records", [])
    for record in records:
        print(record_line(record))
    recorded = [(record.get("callerAgentId"), record.get("targetAgentIds"), record.get("granted")) for record in records]
    if recorded != [("release-orchestrator", ["shop-reviewer"], True)]:
        wrong.append(f"the audit log holds {recorded}")
    answer = show("the user checks that nobody changed that record", server, "AuditService/VerifyAudit", {}, "")
    print(f"  intact: {answer.get('intact', False)}, {answer.get('records', 0)} record(s), head {answer.get('head', '')[:16]}...")
    if not answer.get("intact"):
        wrong.append(f"the audit log is not intact: {answer.get('faults')}")
    return wrong


def show(title: str, server: RunningServer, method: str, body: dict[str, Any], caller: str) -> dict[str, Any]:
    """Prints the title and the command, runs it and returns the answer."""
    arguments = curl.command(server.url, method, body, caller)
    print(f"\n# {title}\n$ {curl.shown(arguments)}", flush=True)
    return curl.run(arguments)


def hit_line(name: str, hit: dict[str, Any]) -> str:
    """Returns a hit as two lines: the list, score, place and role, then the snippet."""
    place = f"{hit.get('agentId', '')} / {hit.get('title') or hit.get('conversationId', '')} / turn {hit.get('seq', 0)}"
    return f"  {name} {hit.get('score', 0):.3f}  {place} ({hit.get('role', '')})\n      {hit.get('snippet', '')}"


def record_line(record: dict[str, Any]) -> str:
    """Returns a record of the audit log as one line."""
    verdict = "granted" if record.get("granted") else "refused"
    turns = len(record.get("turnIds", []))
    caller, targets = record.get("callerAgentId") or "the user", ", ".join(record.get("targetAgentIds", []))
    what = f"{record.get('method', '')} over {record.get('door', '')}, {turns} turn(s)"
    return f"  {record.get('time', '')}  {caller} read {targets}: {verdict}, {what}, because: {record.get('reason') or '-'}"


if __name__ == "__main__":
    sys.exit(main())
