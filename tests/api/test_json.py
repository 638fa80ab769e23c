"""Reading JSON, as laws: whatever comes is read, or refused with its field and without anybody's text; what is read is kept."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import event, given
from hypothesis import strategies as some
from protobuf import (
    DescEnum,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    Message,
    ScalarType,
)

from aforesaid.agent.v1.agent_service_pb import SearchTranscriptsRequest, UpdateAgentRequest
from aforesaid.agent.v1.conversation_service_pb import (
    AppendTurnsRequest,
    CompileContextRequest,
    ImportTurnsRequest,
    SearchTurnsRequest,
    WriteConversationRequest,
)
from aforesaid_server.api.codecs import MAX_DEPTH, read_binary, read_json
from aforesaid_server.errors import InvalidArgument
from tests.api.doors import Contract

SECRET = "squeamish"
ODD = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(),
    some.floats(),
    some.sampled_from([SECRET, "", "5", "-1.0", "1.5", "1e3", "MATCH_ANY_WORD", "\ud800", f"{SECRET} \udfff"]),
    some.sampled_from([[], {}, [None], [[]], {SECRET: 1}]),
)
TEXTS = some.text(some.characters(codec="utf-8"), max_size=5)


def nearly(kind: ScalarType | DescEnum | DescMessage) -> some.SearchStrategy[Any]:
    """JSON of a kind, or now and then something else in its place."""
    match kind:
        case DescMessage(type_name="google.protobuf.Timestamp"):
            right: some.SearchStrategy[Any] = some.sampled_from(["2024-01-01T00:00:00Z", "1969-12-31T23:59:59.5+01:00"])
        case DescMessage(type_name="google.protobuf.FieldMask"):
            right = some.sampled_from(["", "name", "name,parentAgentId"])
        case DescMessage():
            right = some.deferred(lambda: objects(kind))
        case DescEnum():
            right = some.sampled_from([value.name for value in kind.values] + [0, 1, 7])
        case ScalarType.STRING:
            right = TEXTS
        case ScalarType.BOOL:
            right = some.booleans()
        case _:
            right = some.integers(-5, 5) | some.integers(-5, 5).map(str) | some.just(2**31 - 1)
    return some.one_of(right, right, right, ODD)


def objects(message: DescMessage) -> some.SearchStrategy[dict[str, Any]]:
    """Some fields of a message, under either of their names, and now and then one that it has not."""
    fields: dict[str, some.SearchStrategy[Any]] = {SECRET: ODD}
    for field in message.fields:
        value = ODD
        match field.value:
            case DescFieldValueScalar(scalar=kind) | DescFieldValueEnum(enum=kind) | DescFieldValueMessage(message=kind):
                value = nearly(kind)
            case DescFieldValueList(element=kind):
                value = some.lists(nearly(kind), max_size=2) | ODD
            case DescFieldValueMap(value=kind):
                value = some.dictionaries(TEXTS, nearly(kind), max_size=2) | ODD
        fields[field.name] = fields[field.json_name] = value
    names = some.lists(some.sampled_from(sorted(fields)), max_size=4, unique=True)
    return names.flatmap(lambda chosen: some.fixed_dictionaries({name: fields[name] for name in chosen}))


KINDS = (
    SearchTranscriptsRequest,
    AppendTurnsRequest,
    WriteConversationRequest,
    UpdateAgentRequest,
    ImportTurnsRequest,
    SearchTurnsRequest,
    CompileContextRequest,
)


@pytest.mark.parametrize("kind", KINDS)
@given(data=some.data())
def test_any_json_is_read_or_refused(kind: type[Message], data: some.DataObject) -> None:
    content = json.dumps(data.draw(nearly(kind.desc()))).encode()
    read, refused = _read(kind, content)
    if read is not None:
        assert read_binary(kind, read.to_binary()) == read
    else:
        assert refused is not None
        assert not refused.problem.startswith("is no "), f"no reason found for {content!r}"
        assert f"{SECRET} " not in refused.message
        assert not refused.message[0].isupper()


def _read(kind: type[Message], content: bytes) -> tuple[Message | None, InvalidArgument | None]:
    try:
        return read_json(kind, content), None
    except InvalidArgument as error:
        return None, error


@given(data=some.binary(max_size=200) | some.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_json, read_binary):
        with contextlib.suppress(InvalidArgument):
            read(AppendTurnsRequest, data)


@pytest.mark.parametrize("kind", KINDS)
@given(data=some.data())
def test_what_we_read_google_reads_alike(kind: type[Message], data: some.DataObject, contract: Contract) -> None:
    """A second reader, of the same JSON: what we read it reads too, and it reads the same."""
    value = data.draw(objects(kind.desc()))
    read, refused = _read(kind, json.dumps(value).encode())
    theirs = contract.empty(kind.desc().type_name)
    if read is None:
        event(str(refused))
        return
    try:
        json_format.ParseDict(value, theirs, descriptor_pool=contract.pool)
    except json_format.ParseError as error:
        event(f"stricter: {error}")
        return
    assert type(theirs).FromString(read.to_binary()) == theirs


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 5000])
def test_depth_counts_only_outside_of_text(depth: int) -> None:
    """Many brackets make the reader look; those in text, and those that close again, count for nothing."""
    wide = [{"parts": [{"text": '"[{' * 50}]}] * 600
    assert len(read_json(AppendTurnsRequest, json.dumps({"turns": wide}).encode()).turns) == 600
    content = f'{{"turns": {json.dumps(wide)}, "agentId": {"[" * (depth - 1)}{"]" * (depth - 1)}}}'
    with pytest.raises(InvalidArgument) as raised:
        read_json(AppendTurnsRequest, content.encode())
    assert raised.value.message == (
        "agent_id: a list is not text" if depth <= MAX_DEPTH else f"request: is nested more than {MAX_DEPTH} deep"
    )


@pytest.mark.parametrize("piece", ['\\"', '"', "\\", '{"a":"', '"\\"'])
def test_quotes_that_do_not_pair_take_no_long_time(piece: str) -> None:
    """Each would be looked at as the beginning of another string, to the end of the data: hours."""
    with pytest.raises(InvalidArgument):
        read_json(AppendTurnsRequest, ("[]" * 2000 + '"' + piece * 1_000_000).encode())
