"""R-SYS-1: what is asked for at a revision that is yet to come."""

from __future__ import annotations

import pytest

from podling.apiserver.verbs.list_options import until_fresh
from podling.model.errors import StatusError
from podling.storage.memory import MemoryStorage
from podling.watch.cache import ResourceCache


@pytest.fixture
async def cache() -> ResourceCache:
    cache = ResourceCache(MemoryStorage(), "/registry/x/", bytes, kind="X", api_version="v1")
    await cache.start()
    return cache


async def test_what_does_not_come_is_refused_with_the_time_to_try_again(cache: ResourceCache) -> None:
    with pytest.raises(StatusError) as refused:
        await until_fresh(cache, 7)
    status = refused.value.status()
    assert (status["code"], status["reason"]) == (504, "Timeout")
    assert status["message"] == f"Timeout: Too large resource version: 7, current: {cache.revision}"
    assert status["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


async def test_what_is_there_is_not_waited_for(cache: ResourceCache) -> None:
    with pytest.raises(StopIteration):
        until_fresh(cache, cache.revision).send(None)
