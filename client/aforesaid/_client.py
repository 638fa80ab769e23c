"""The service as a Python object, blocking (`Client`) and for asyncio (`AsyncClient`): plain values in and out, pages as iterators.

What can be asked stands once, in `_calls.py`; here it is asked. Everything that may go wrong is an AforesaidError.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, overload

from pyqwest import SyncTransport, Transport

from aforesaid import _calls
from aforesaid._calls import Once, Pages, Scope
from aforesaid._config import Config
from aforesaid._errors import AforesaidError
from aforesaid._replies import Imported
from aforesaid._streams import Importer, Sending
from aforesaid._wire import CONNECTIONS, AsyncWire, Wire
from aforesaid.model import Agent, Conversation

Asked = ParamSpec("Asked")
Value = TypeVar("Value")
Entry = TypeVar("Entry")
AnyTransport = TypeVar("AnyTransport", SyncTransport, Transport)
Chunk: TypeAlias = tuple[Agent, Conversation]
Told: TypeAlias = Callable[[Imported], None]


# Not Coroutine[Any, Any, Value]: with those, asyncio.gather() of two kinds of calls has no type for mypy.
Awaited: TypeAlias = Coroutine[object, None, Value]


class _Asks(Generic[Asked, Value]):
    """A method that asks once: of a Client it returns the value, of an AsyncClient a coroutine of the value."""

    def __init__(self, call: Callable[Asked, Once[Value]]) -> None:
        self._call = call

    @overload
    def __get__(self, client: None, owner: object) -> Callable[Asked, Once[Value]]: ...
    @overload
    def __get__(self, client: Client, owner: object) -> Callable[Asked, Value]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: object) -> Callable[Asked, Awaited[Value]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: object) -> Callable[Asked, Any]:
        return self._call if client is None else client._asking(self._call)


class _Lists(Generic[Asked, Entry]):
    """A method that asks page by page: of a Client it returns an iterator, of an AsyncClient an asynchronous one."""

    def __init__(self, call: Callable[Asked, Pages[Entry]]) -> None:
        self._call = call

    @overload
    def __get__(self, client: None, owner: object) -> Callable[Asked, Pages[Entry]]: ...
    @overload
    def __get__(self, client: Client, owner: object) -> Callable[Asked, Iterator[Entry]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: object) -> Callable[Asked, AsyncIterator[Entry]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: object) -> Callable[Asked, Any]:
        return self._call if client is None else client._listing(self._call)


class _Service(Generic[AnyTransport]):
    """A caller of one service: the user, or the agent `agent_id`, with `token` where the service wants one.

    What is not given comes from the environment (AFORESAID_URL, AFORESAID_TOKEN, ...), else from aforesaid/config.toml, else the
    service on this machine is called as the user. A call may take `timeout` seconds, its `retries` included (60 and 3 unless set);
    only reads are tried again. The token goes over http:// to another machine only with `token_in_clear`. `ca` is a PEM file of
    certificates to trust. No more than `connections` are used at once; calls beyond wait for their turn. `transport` stands in for
    the network. `scope` in a method narrows what the caller sees for that call.
    """

    def __init__(
        self,
        url: str | None = None,
        agent_id: str | None = None,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        token: str | None = None,
        token_in_clear: bool | None = None,
        ca: str | None = None,
        connections: int = CONNECTIONS,
        transport: AnyTransport | None = None,
    ) -> None:
        given = {"url": url, "agent_id": agent_id, "timeout": timeout, "retries": retries, "token": token, "ca": ca}
        self.config = Config.read(given | {"token_in_clear": token_in_clear})
        self._open(connections, transport)

    def _open(self, connections: int, transport: AnyTransport | None) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config.url!r}, {self.config.agent_id!r})"

    search = _Lists(_calls.search)
    read = _Lists(_calls.read)
    agents = _Lists(_calls.agents)
    agent = _Asks(_calls.agent)
    update_agent = _Asks(_calls.update_agent)
    conversations = _Lists(_calls.conversations)
    conversation = _Asks(_calls.conversation)
    append = _Asks(_calls.append)
    write = _Asks(_calls.write)
    index_conversation = _Asks(_calls.index_conversation)
    delete = _Asks(_calls.delete)
    search_turns = _Asks(_calls.search_turns)
    resolve_source = _Asks(_calls.resolve_source)
    compile_context = _Asks(_calls.compile_context)
    reads = _Lists(_calls.reads)
    verify_audit = _Asks(_calls.verify_audit)


class Client(_Service[SyncTransport]):
    __doc__ = f"{_Service.__doc__}\n    Blocks; may be used from several threads."

    def _open(self, connections: int, transport: SyncTransport | None) -> None:
        # For messages as they are on the wire, such as the JSON that the command line prints.
        self.wire = Wire(self.config, transport, connections=connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives the connections back."""
        self.wire.close()

    def import_turns(self, chunks: Iterable[Chunk], *, scope: Scope | None = None, on_stream: Told | None = None) -> Imported:
        """Takes many turns of many conversations, in streams of about 4 MiB or 2,000 turns. Returns the sum of what became of them.

        Each stream is kept once it is acknowledged, and told to `on_stream`. An import that was cut off is run again from its
        beginning: what was taken is unchanged (turns want ids of their own for that). What the service refuses is counted and the
        rest is taken; any other error ends the import and is raised.
        """
        importer = Importer(scope, on_stream)
        for agent, conversation in chunks:
            self._send(importer.add(agent, conversation))
        self._send(importer.finish())
        return importer.total

    def _ask(self, once: Once[Value]) -> Value:
        return once.convert(self.wire.call(once.method, once.request))

    def _asking(self, call: Callable[Asked, Once[Value]]) -> Callable[Asked, Value]:
        @wraps(call)
        def ask(*args: Asked.args, **kwargs: Asked.kwargs) -> Value:
            return self._ask(call(*args, **kwargs))

        return ask

    def _listing(self, call: Callable[Asked, Pages[Entry]]) -> Callable[Asked, Iterator[Entry]]:
        @wraps(call)
        def ask(*args: Asked.args, **kwargs: Asked.kwargs) -> Iterator[Entry]:
            return self._entries(call(*args, **kwargs))

        return ask

    def _entries(self, pages: Pages[Entry] | None) -> Iterator[Entry]:
        while pages is not None:
            entries, pages = self._ask(pages.page)
            yield from entries

    def _send(self, sending: Sending) -> None:
        with suppress(StopIteration):
            stream = next(sending)
            while True:
                try:
                    reply = self.wire.import_turns(stream)
                except AforesaidError as error:
                    stream = sending.throw(error)
                else:
                    stream = sending.send(reply)


class AsyncClient(_Service[Transport]):
    __doc__ = (
        f"{_Service.__doc__}\n    For asyncio; may be used from many tasks at once. A task that is cancelled hangs up its call."
    )

    def _open(self, connections: int, transport: Transport | None) -> None:
        self.wire = AsyncWire(self.config, transport, connections=connections)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Gives the connections back."""
        await self.wire.close()

    async def import_turns(
        self,
        chunks: Iterable[Chunk] | AsyncIterable[Chunk],
        *,
        scope: Scope | None = None,
        on_stream: Told | None = None,
    ) -> Imported:
        """Does what Client.import_turns does, of an iterable or an asynchronous one."""
        importer = Importer(scope, on_stream)
        async for agent, conversation in _awaited(chunks):
            await self._send(importer.add(agent, conversation))
        await self._send(importer.finish())
        return importer.total

    async def _ask(self, once: Once[Value]) -> Value:
        return once.convert(await self.wire.call(once.method, once.request))

    def _asking(self, call: Callable[Asked, Once[Value]]) -> Callable[Asked, Awaited[Value]]:
        @wraps(call)
        async def ask(*args: Asked.args, **kwargs: Asked.kwargs) -> Value:
            return await self._ask(call(*args, **kwargs))

        return ask

    def _listing(self, call: Callable[Asked, Pages[Entry]]) -> Callable[Asked, AsyncIterator[Entry]]:
        @wraps(call)
        def ask(*args: Asked.args, **kwargs: Asked.kwargs) -> AsyncIterator[Entry]:
            return self._entries(call(*args, **kwargs))

        return ask

    async def _entries(self, pages: Pages[Entry] | None) -> AsyncIterator[Entry]:
        while pages is not None:
            entries, pages = await self._ask(pages.page)
            for entry in entries:
                yield entry

    async def _send(self, sending: Sending) -> None:
        with suppress(StopIteration):
            stream = next(sending)
            while True:
                try:
                    reply = await self.wire.import_turns(stream)
                except AforesaidError as error:
                    stream = sending.throw(error)
                else:
                    stream = sending.send(reply)


async def _awaited(chunks: Iterable[Chunk] | AsyncIterable[Chunk]) -> AsyncIterator[Chunk]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk
