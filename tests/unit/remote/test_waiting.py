"""A pod is followed until it is gone, whatever its watch does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, cast

import pytest

from podling.client.client import WatchEvent
from podling.client.https import HttpsTransport
from podling.debug.container import Wish, WishError, pod_path
from podling.debug.progress import NoContainer, Over, Running, TooLate
from podling.model.codec import json
from podling.model.errors import StatusError, not_found
from podling.model.types.pod import Pod
from podling.remote.adding import Request, joinable
from podling.remote.pods import Cluster
from podling.remote.terminal import Narrator
from podling.remote.waiting import UNTOLD, states, until_over, until_running

Change = tuple[str, Pod]


def pod(version: int, uid: str = "u", **status: Any) -> Pod:
    metadata = {"name": "web", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    spec = {
        "nodeName": "n",
        "containers": [{"name": "app", "image": "i"}],
        "ephemeralContainers": [{"name": "debug", "image": "i"}],
    }
    return json.from_data({"metadata": metadata, "spec": spec, "status": status}, Pod)


def stands(version: int, **state: Any) -> Pod:
    return pod(version, ephemeralContainerStatuses=[{"name": "debug", "state": state}])


def ended(version: int) -> Pod:
    return stands(version, terminated={"exitCode": 7, "reason": "Error"})


class Told(Cluster):
    """Answers each watch with the next of `watches`, and each GET with the next of `gets`; None is 404. After
    the last watch nothing comes any more."""

    def __init__(self, watches: Sequence[Sequence[Change] | StatusError], gets: Sequence[Pod | None]) -> None:
        super().__init__(cast(HttpsTransport, None))
        self._watches = iter(watches)
        self._gets: Iterator[Pod | None] = iter(gets)
        self.versions: list[str] = []
        self.paths: list[str] = []

    async def get(self, namespace: str, name: str) -> Pod:
        if (found := next(self._gets)) is None:
            raise not_found("pods", name)
        return found

    async def changes(
        self, path: str, type_: Any, resource_version: str, field_selector: str, *, label_selector: str = ""
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        self.versions.append(resource_version)
        self.paths.append(path)
        if (told := next(self._watches, None)) is None:
            await asyncio.Event().wait()
            return
        if isinstance(told, StatusError):
            raise told
        for kind, found in told:
            yield WatchEvent(kind, found)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that are waited, without waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return found


async def seen(cluster: Cluster) -> list[str]:
    return [found.metadata.resource_version async for found in states(cluster, pod(1))]


TOO_OLD = StatusError(410, "Expired", "too old")
CASES: Sequence[tuple[Sequence[Sequence[Change] | StatusError], Sequence[Pod | None], list[str]]] = [
    ([[("MODIFIED", pod(2)), ("DELETED", pod(3))]], [], ["1", "2"]),
    ([[("BOOKMARK", pod(2)), ("DELETED", pod(3))]], [], ["1"]),
    ([[("ADDED", pod(2, "other"))]], [], ["1"]),
    ([[("MODIFIED", pod(2))], [("DELETED", pod(4))]], [pod(3)], ["1", "2", "3"]),
    ([[("MODIFIED", pod(2))], [("DELETED", pod(4))]], [pod(2)], ["1", "2"]),
    ([TOO_OLD, [("DELETED", pod(4))]], [pod(3)], ["1", "3"]),
    ([[]], [None], ["1"]),
    ([[]], [pod(9, "other")], ["1"]),
]


@pytest.mark.parametrize(("watches", "gets", "versions"), CASES)
async def test_a_pod_is_followed_until_it_is_gone(
    watches: Sequence[Sequence[Change] | StatusError], gets: Sequence[Pod | None], versions: list[str]
) -> None:
    assert await seen(Told(watches, gets)) == versions


async def test_watches_that_end_at_once_are_asked_with_pauses(pauses: list[float]) -> None:
    watches: list[list[Change]] = [[], [], [], [("MODIFIED", pod(2))], [], [("DELETED", pod(3))]]
    cluster = Told(watches, [pod(1), pod(1), pod(1), pod(2), pod(2)])
    assert await seen(cluster) == ["1", "2"]
    assert cluster.versions == ["1", "1", "1", "1", "2", "2"]
    assert pauses == [0.1, 0.2, 0.4, 0.1]


async def test_what_is_refused_is_told() -> None:
    with pytest.raises(StatusError, match="no"):
        await seen(Told([StatusError(403, "Forbidden", "no")], []))


async def test_the_end_of_a_container_is_waited_for() -> None:
    assert await until_over(Told([[("MODIFIED", ended(2))]], []), pod(1), "debug") == Over(7, "Error", "")
    with pytest.raises(TooLate, match="debug does not run after 0 seconds: waiting for the kubelet"):
        await until_over(Told([], []), pod(1), "debug", 0)
    with pytest.raises(NoContainer, match="pod web was deleted"):
        await until_over(Told([[("DELETED", pod(2))]], []), pod(1), "debug")


async def test_a_container_that_nothing_is_known_of_is_waited_for() -> None:
    waits = stands(2, waiting={"reason": "ContainerCreating"})
    cluster = Told([[("MODIFIED", waits), ("MODIFIED", stands(3, running={}))]], [])
    assert await until_running(cluster, pod(1), "debug", Narrator(quiet=True), 60) == Running()
    with pytest.raises(TooLate, match="debug does not run after 0 seconds: waiting for the kubelet"):
        await until_running(Told([], []), pod(1), "debug", Narrator(quiet=True), 0)


@pytest.mark.parametrize("is_long", [False, True])
async def test_events_are_watched_when_a_wait_is_long(monkeypatch: pytest.MonkeyPatch, is_long: bool) -> None:
    waited = asyncio.Event()

    async def sleep(seconds: float) -> None:
        assert seconds == UNTOLD
        waited.set()
        if not is_long:
            await asyncio.Event().wait()

    class Slow(Told):
        async def changes(
            self, path: str, *of_watch: Any, **more: Any
        ) -> AsyncGenerator[WatchEvent[Any], None]:
            async for change in super().changes(path, *of_watch, **more):
                await waited.wait()
                yield change

    monkeypatch.setattr(asyncio, "sleep", sleep)
    cluster = Slow([[("MODIFIED", stands(2, running={}))]], [])
    narrator = Narrator()
    narrator.is_live = True
    assert await until_running(cluster, pod(1), "debug", narrator, 60) == Running()
    events = "/api/v1/namespaces/ns/events"
    assert cluster.paths == [pod_path("ns"), *([events] if is_long else [])]


async def test_a_second_command_adds_no_container_to_one_that_may_yet_run() -> None:
    """Only of what has ended is it said that the name is used up."""
    request, quiet = Request("ns", "web", Wish(), "debug"), Narrator(quiet=True)
    for found in (pod(1), stands(1, waiting={"reason": "ContainerCreating"}), stands(1, running={})):
        assert await joinable(Told([], []), request, found, quiet) == (found, "debug")
    with pytest.raises(WishError, match="does not run, and its name cannot be used again"):
        await joinable(Told([], []), request, ended(1), quiet)
