"""Peers that leave while nobody reads from them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from podling.streaming import driver as hang_up
from podling.streaming.driver import Driver

Held = tuple[Driver, asyncio.StreamWriter]


@pytest.fixture
async def held(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Held]:
    """A driver that holds its peer back, and the peer."""
    monkeypatch.setattr(hang_up, "HELD", 0)
    monkeypatch.setattr(hang_up, "GRACE", 0)
    driver = Driver()
    driver.serves_client = True
    listener = await asyncio.get_running_loop().create_server(lambda: driver, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
    listener.close()
    writer.write(b"unread")
    await writer.drain()
    driver.hold_peer()
    async with asyncio.timeout(5):
        yield driver, writer
        driver.drop()
        await driver.wait_lost()
        writer.close()


async def test_one_that_closes_is_dropped(held: Held) -> None:
    driver, peer = held
    peer.close()
    await driver.wait_lost()


async def test_one_that_is_cut_off_is_dropped(held: Held) -> None:
    driver, peer = held
    peer.transport.abort()
    await driver.wait_lost()


async def test_one_that_stays_is_kept_and_may_be_read_again(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, _ = held
    heard = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(driver, "data_received", heard.set_result)
    driver.release_peer()
    assert await heard == b"unread"
    assert not driver.lost


async def test_one_that_closes_is_read_to_its_end_if_it_is_read_in_time(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang_up, "GRACE", 60)
    driver, peer = held
    heard = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(driver, "data_received", heard.set_result)
    peer.close()
    await peer.wait_closed()
    driver.release_peer()
    assert await heard == b"unread"
    await driver.wait_lost()


async def test_one_that_is_no_client_is_read_to_its_end_however_late(held: Held) -> None:
    driver, peer = held
    driver.release_peer()
    driver.serves_client = False
    driver.hold_peer()
    peer.close()
    await peer.wait_closed()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await driver.wait_lost()


async def test_nothing_is_left_open(held: Held) -> None:
    driver, _ = held
    driver.release_peer()
    before = open_files()
    for _ in range(20):
        driver.hold_peer()
        await asyncio.sleep(0.01)
        driver.release_peer()
    assert open_files() == before


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
