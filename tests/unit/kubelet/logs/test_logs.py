"""Following a log: growth, rotation and the end, each woken by the file; a timer only asks whether it is
complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podling.kubelet.logs.format import LogOptions
from podling.kubelet.logs.reading import (
    LogChanges,
    follow_log,
    send_log,
    wait_complete,
    written_out,
)
from virtual_time import VirtualLoop


def line(text: str) -> bytes:
    return f"2016-10-06T00:17:09Z stdout F {text}\n".encode()


class Container:
    """Writes a log, is followed, ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out = path.open("ab", buffering=0)
        self.gone = asyncio.Event()
        self.complete = True
        self.heard = b""
        self._news = asyncio.Event()

    def say(self, text: str) -> None:
        self.out.write(line(text))

    def rotate(self) -> None:
        self.path.rename(self.path.with_suffix(".old"))
        self.out.close()
        self.out = self.path.open("ab", buffering=0)

    async def follow(self, **options: Any) -> None:
        async def write(data: bytes) -> None:
            self.heard += data
            self._news.set()

        async def ended() -> bool:
            await self.gone.wait()
            return self.complete

        tail = options.pop("tail_lines", None)
        await follow_log(
            self.path,
            LogOptions(**options),
            write,
            ended=ended,
            tail_lines=tail,
        )

    async def until(self, heard: bytes) -> None:
        async with asyncio.timeout(5):
            while self.heard != heard:
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[Container]:
    container = Container(tmp_path / "0.log")
    yield container
    container.out.close()


async def test_lines_come_as_they_are_written_until_the_container_ends(container: Container) -> None:
    container.say("one")
    async with asyncio.TaskGroup() as group:
        group.create_task(container.follow())
        await container.until(b"one\n")
        container.say("two")
        await container.until(b"one\ntwo\n")
        container.gone.set()


async def test_a_rotated_log_is_read_out_and_then_its_successor(container: Container) -> None:
    async with asyncio.TaskGroup() as group:
        following = group.create_task(container.follow())
        container.say("before")
        await container.until(b"before\n")
        container.say("last of the old")
        container.rotate()
        container.say("first of the new")
        await container.until(b"before\nlast of the old\nfirst of the new\n")
        container.rotate()
        container.say("again")
        container.gone.set()
        await following
    assert container.heard.endswith(b"again\n")


async def test_the_log_of_an_ended_container_is_complete_once_its_runtime_has_closed_it(
    container: Container,
) -> None:
    """What is not followed waits for it too: kubectl asks so when it comes too late to attach."""

    async def ended() -> bool:
        return False

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(written_out(container.path, ended))
        container.say("first")
        await asyncio.sleep(0)
        assert not waiting.done()
        container.say("last")
        container.out.close()
        async with asyncio.timeout(5):
            await waiting


async def test_the_last_words_of_an_ended_container_are_waited_for(container: Container) -> None:
    """R-INIT-8: its runtime may still be writing when the end is known."""
    container.complete = False
    async with asyncio.TaskGroup() as group:
        following = group.create_task(container.follow())
        container.say("first")
        await container.until(b"first\n")
        container.gone.set()
        container.say("last words")
        await container.until(b"first\nlast words\n")
        assert not following.done()
        container.out.close()


async def test_a_log_that_was_closed_unseen_ends_when_the_runtime_says_so(container: Container) -> None:
    container.complete = False
    container.say("all")
    container.out.close()
    container.gone.set()
    async with asyncio.TaskGroup() as group:
        following = group.create_task(container.follow())
        await container.until(b"all\n")
        assert not following.done()
        container.complete = True


def test_a_log_that_was_closed_unseen_is_asked_about_in_short_steps_first() -> None:
    """A runtime has written all some milliseconds after the exit, and who attaches is waiting for it."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        now = runner.get_loop().time

        async def ended() -> bool:
            return now() >= 0.025

        runner.run(wait_complete(ended, LogChanges("0.log"), asyncio.Event()))
        assert now() < 0.03


async def test_following_stops_at_the_limit(container: Container) -> None:
    container.say("123456")
    await container.follow(limit_bytes=3)
    assert container.heard == b"123"


async def test_a_tail_is_followed_from_there(container: Container) -> None:
    container.say("one")
    container.say("two")
    async with asyncio.TaskGroup() as group:
        group.create_task(container.follow(tail_lines=1))
        await container.until(b"two\n")
        container.say("three")
        await container.until(b"two\nthree\n")
        container.gone.set()


async def test_two_followers_hear_the_same(container: Container) -> None:
    other = Container(container.path)
    async with asyncio.TaskGroup() as group:
        group.create_task(container.follow())
        group.create_task(other.follow())
        container.say("both")
        await container.until(b"both\n")
        await other.until(b"both\n")
        container.gone.set()
        other.gone.set()
    other.out.close()


async def test_a_write_that_fails_ends_the_following(container: Container) -> None:
    async def gone(data: bytes) -> None:
        raise ConnectionResetError

    async def never() -> bool:
        return await asyncio.Event().wait()

    container.say("x")
    with pytest.raises(ExceptionGroup) as group:
        await follow_log(container.path, LogOptions(), gone, ended=never)
    assert group.group_contains(ConnectionResetError)


async def test_what_there_is_without_following(container: Container) -> None:
    container.say("one")
    container.say("two")
    heard: list[bytes] = []

    async def write(data: bytes) -> None:
        heard.append(data)

    await send_log(container.path, LogOptions(), write, tail_lines=1)
    assert b"".join(heard) == b"two\n"


async def test_no_log_is_an_os_error(container: Container) -> None:
    async def write(data: bytes) -> None: ...

    with pytest.raises(FileNotFoundError):
        await send_log(container.path.parent / "none.log", LogOptions(), write)


async def test_a_log_that_goes_while_its_end_is_awaited_is_sent_all_the_same(tmp_path: Path) -> None:
    """As that of an instance before the last, of a container that ends again and again."""
    path, sent = tmp_path / "0.log", bytearray()
    path.write_bytes(b"2026-01-02T03:04:05.000000000Z stdout F hello\n")

    async def write(data: bytes) -> None:
        sent.extend(data)

    async def ended() -> bool:
        path.unlink()
        return True

    await send_log(path, LogOptions(), write, ended=ended)
    assert sent == b"hello\n"
