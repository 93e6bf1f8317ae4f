"""What is long is decided beside the loop, in all its steps; what is short at once."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver import pipeline
from podling.apiserver.kinds.config import ConfigMaps
from podling.apiserver.verbs import list as list_verb
from podling.process.waits import PACE, SHORT, Aside, aside

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize("long", [True, False])
async def test_where_it_is_decided(api: Conversation, monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    beside: set[tuple[str, bool]] = set()

    def noting(name: str) -> None:
        work = getattr(ConfigMaps, name)

        def noted(*arguments: Any) -> Any:
            beside.add((name, threading.current_thread() is not threading.main_thread()))
            return work(*arguments)

        monkeypatch.setattr(ConfigMaps, name, noted)

    decided = ("default", "prepare_create", "validate_create", "prepare_update", "validate_update")
    for name in decided:
        noting(name)
    config = {"metadata": {"name": "a"}, "data": {"k": "x" * (SHORT if long else 1)}}
    assert (await api.post(CONFIGS, config)).status == 201
    assert (
        await api.put(f"{CONFIGS}/a", {**config, "metadata": {"name": "a", "labels": {"b": "c"}}})
    ).status == 200
    assert (await api.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"b": "d"}}})).status == 200
    assert beside == {(name, long) for name in decided}


@pytest.mark.parametrize("long", [True, False])
async def test_where_a_query_and_its_selectors_are_read(
    api: Conversation, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    beside: list[bool] = []

    def noting(module: Any, name: str) -> None:
        work = getattr(module, name)

        def noted(text: str, *pace: Any) -> Any:
            beside.append(threading.current_thread() is not threading.main_thread())
            return work(text, *pace)

        monkeypatch.setattr(module, name, noted)

    noting(pipeline, "parse_query" if long else "recall_query")
    noting(list_verb, "parse_label_selector")
    noting(list_verb, "parse_field_selector")
    times = 2000 if long else 1
    labels, fields = ",".join(["a!=b"] * times), ",".join(["metadata.name!=b"] * times)
    answer = await api.get(f"{CONFIGS}?labelSelector={labels}&fieldSelector={fields}")
    assert answer.status == 200
    assert beside == [long] * 3


async def test_long_work_of_all_requests_takes_turns() -> None:
    """So that no more than one thread vies with the loop for Python's lock."""
    loop, begun, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def first() -> int:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait()
        return threading.get_ident()

    def second() -> int:
        return threading.get_ident()

    async with asyncio.TaskGroup() as tasks:
        one = tasks.create_task(aside(SHORT + 1, first))
        await begun.wait()
        other = tasks.create_task(aside(SHORT + 1, second))
        await asyncio.sleep(0)
        # A pool of several threads would start the second now: its only thread so far is taken.
        goes_on.set()
    assert one.result() == other.result()


async def test_long_work_gives_way_all_along(api: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """To short requests: before each call that takes long, and in every loop over what a client sent."""
    asked: list[bool] = []
    monkeypatch.setattr(Aside, "give_way", lambda beside: asked.append(beside.is_here))
    many = 30_000
    metadata = {"name": "a", "finalizers": [f"example.com/f{number}" for number in range(many)]}
    assert (await api.post(f"{CONFIGS}?dryRun=All", {"metadata": metadata})).status == 201
    assert asked.count(True) > 2 * many / PACE
    for selector in ("labelSelector", "fieldSelector"):
        asked.clear()
        assert (await api.get(f"{CONFIGS}?{selector}={','.join(['metadata.name!=b'] * 2000)}")).status == 200
        assert asked.count(True) > 2000 / PACE
