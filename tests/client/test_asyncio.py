"""What only AsyncClient has to do: many tasks at once, cancellation, time limits of asyncio, asynchronous iterables."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import aforesaid
from aforesaid import Agent, AsyncClient, Client, Conversation, Imported, Text, Turn
from tests.client.ports import Hanging, listening, refused_port


async def happened(event: threading.Event) -> bool:
    return await asyncio.to_thread(event.wait, 60)


async def first_page(client: AsyncClient) -> object:
    return await anext(client.search("q"))


CALLS: list[Callable[[AsyncClient], Coroutine[Any, Any, object]]] = [
    lambda client: client.agent(),
    lambda client: client.append("c", []),
    first_page,
    lambda client: client.import_turns([(Agent("a"), Conversation("c", "a"))]),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_task_that_is_cancelled_hangs_up_its_call(call: Callable[[AsyncClient], Coroutine[Any, Any, object]]) -> None:
    async def main() -> None:
        port = Hanging()
        async with AsyncClient(port.url, "") as client:
            task = asyncio.create_task(call(client))
            assert await happened(port.asked)
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
            assert await happened(port.hung_up)
        port.close()

    asyncio.run(main())


def test_a_time_limit_of_asyncio_is_its_own_error() -> None:
    async def main() -> None:
        with listening(None) as url:
            async with AsyncClient(url, "") as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await client.agent()

    asyncio.run(main())


def test_a_task_group_ends_its_other_calls_when_one_fails() -> None:
    async def main() -> None:
        port = Hanging()
        async with AsyncClient(port.url, "") as client:
            with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the group is what raises
                async with asyncio.TaskGroup() as group:
                    hanging = group.create_task(client.agent())
                    assert await happened(port.asked)
                    group.create_task(client.append("c", [Turn("user", (Text("\ud800"),))]))
            assert [type(error) for error in caught.value.exceptions] == [aforesaid.InvalidArgument]
            assert hanging.cancelled()
            assert await happened(port.hung_up)
        port.close()

    asyncio.run(main())


def test_a_pause_before_the_next_attempt_can_be_cancelled() -> None:
    async def main() -> None:
        paused = asyncio.Event()

        async def sleep(_: float) -> None:
            paused.set()
            await asyncio.Event().wait()

        async with AsyncClient(refused_port(), "") as client:
            client.wire._sleep = sleep  # the loop's own would end by itself
            task = asyncio.create_task(client.agent())
            await paused.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


async def passed_by(server: asyncio.Server) -> None:
    """Opens a connection and hangs up."""
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.close()
    await writer.wait_closed()


def test_many_tasks_use_one_client_over_few_connections() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"

    async def main() -> None:
        open_now: set[asyncio.Task[None] | None] = set()
        asked, most, enough = 0, 0, asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked, most
            open_now.add(asyncio.current_task())
            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                    await reader.readexactly(int(length.split(b":")[1]))
                    asked += 1
                    most = max(most, asked)
                    if asked == 4:
                        # Time for a fifth to come, if it could: other connections are taken meanwhile.
                        for _ in range(50):
                            await passed_by(server)
                        enough.set()
                    await enough.wait()
                    asked -= 1
                    writer.write(answer)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()
                open_now.discard(asyncio.current_task())

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            async with AsyncClient(url, "", connections=4) as client:
                assert await asyncio.gather(*(client.agent(str(number)) for number in range(200))) == [Agent("", scope={})] * 200
            await asyncio.gather(*(task for task in open_now if task is not None))
        assert most == 4

    asyncio.run(main())


def test_a_call_that_waits_for_others_until_its_time_is_up_says_so() -> None:
    async def main() -> None:
        port = Hanging()
        async with AsyncClient(port.url, "", timeout=0.05, connections=1) as client:
            hanging = asyncio.create_task(client.import_turns([(Agent("a"), Conversation("c", "a"))]))
            assert await happened(port.asked)
            with pytest.raises(aforesaid.DeadlineExceeded, match=r"within 0\.05 s: other calls were first$"):
                await client.agent()
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
        port.close()

    asyncio.run(main())


def test_a_thread_that_waits_for_others_until_its_time_is_up_says_so() -> None:
    port = Hanging()
    with Client(port.url, "", timeout=0.05, connections=1) as client, ThreadPoolExecutor() as threads:
        hanging = threads.submit(client.import_turns, [(Agent("a"), Conversation("c", "a"))])
        assert port.asked.wait(60)
        with pytest.raises(aforesaid.DeadlineExceeded, match=r"within 0\.05 s: other calls were first$"):
            client.agent()
        port.hang_up()
        with pytest.raises(aforesaid.Unreachable):
            hanging.result(60)
    port.close()


@pytest.mark.parametrize("connections", [0, -1])
def test_no_connection_at_all_is_refused(connections: int) -> None:
    for kind in (AsyncClient, Client):
        with pytest.raises(aforesaid.InvalidArgument, match=f"^connections: must be 1 or more: {connections}$"):
            kind(connections=connections)


def test_tasks_do_not_see_each_others_answers(service_url: str) -> None:
    async def main() -> None:
        async with AsyncClient(service_url, "") as client:
            errors = await asyncio.gather(*(client.agent(f"nobody {number}") for number in range(40)), return_exceptions=True)
        assert [type(error) for error in errors] == [aforesaid.NotFound] * 40
        ids = {error.request_id for error in errors if isinstance(error, aforesaid.AforesaidError)}
        assert len(ids) == 40
        assert "" not in ids

    asyncio.run(main())


def test_one_client_goes_through_several_loops_and_is_made_outside_of_any(service_url: str) -> None:
    client = AsyncClient(service_url, "")

    async def main() -> int:
        return len([agent async for agent in client.agents()])

    assert asyncio.run(main()) <= asyncio.run(main())
    asyncio.run(client.aclose())


def test_an_import_takes_an_asynchronous_iterable(service_url: str) -> None:
    async def chunks() -> AsyncIterator[tuple[Agent, Conversation]]:
        for number in range(3):
            await asyncio.sleep(0)
            turns = tuple(Turn("user", (Text("x"),), str(turn)) for turn in range(number))
            yield Agent("awaited import"), Conversation(str(number), "awaited import", turns=turns)

    async def main() -> Imported:
        async with AsyncClient(service_url, "") as client:
            taken = await client.import_turns(chunks())
            kept = {conversation.conversation_id async for conversation in client.conversations("awaited import")}
            assert {"1", "2"} <= kept
        return taken

    assert asyncio.run(main()) == Imported(added=3)


def test_leaving_a_search_early_is_no_trouble(service_url: str) -> None:
    async def main() -> None:
        async with AsyncClient(service_url, "") as client:
            await client.append("c", [Turn("user", (Text("leaving early"),)) for _ in range(3)], agent_id="early")
            async for page in client.search("leaving", agent_id="early", limit=1):
                assert len(page.matches) == 1
                break

    asyncio.run(main())
