"""R-SYS-1: one stored event, read and written in both versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CORE = "/api/v1/namespaces/default/events"
NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"


def core_event(name: str = "e") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Started",
        "message": "it runs",
        "type": "Normal",
    }


async def test_written_in_one_version_read_in_the_other(api: Conversation) -> None:
    made = (await api.post(CORE, core_event())).body
    seen = (await api.get(f"{NEWER}/e")).body
    assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
    assert seen["note"] == "it runs" and seen["regarding"]["name"] == "p"
    assert seen["metadata"] == made["metadata"]


async def test_replaced_in_one_version_changed_in_the_other(api: Conversation) -> None:
    await api.post(CORE, core_event())
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    patched = await api.patch(f"{NEWER}/e", {"series": series})
    assert patched.status == 200
    assert (await api.get(f"{CORE}/e")).body["series"] == series
    reworded = await api.patch(f"{CORE}/e", {"message": "it still runs"})
    assert reworded.status == 200
    assert (await api.get(f"{NEWER}/e")).body["note"] == "it still runs"
    assert (await api.post(NEWER, {"metadata": {"name": "e"}})).status in (409, 422)
    assert (await api.delete(f"{NEWER}/e")).status == 200
    assert (await api.get(f"{CORE}/e")).status == 404


async def test_watched_in_both_versions(api: Conversation) -> None:
    async with await api.watch(f"{CORE}?watch=1") as old, await api.watch(f"{NEWER}?watch=1") as new:
        await api.post(CORE, core_event())
        await api.delete(f"{CORE}/e")
        assert await old.names(2) == await new.names(2) == ["ADDED e", "DELETED e"]


async def test_listed_and_selected_by_their_own_names(api: Conversation) -> None:
    await api.post(CORE, core_event())
    assert len((await api.get(f"{CORE}?fieldSelector=involvedObject.name%3Dp")).body["items"]) == 1
    assert len((await api.get(f"{NEWER}?fieldSelector=regarding.name%3Dp")).body["items"]) == 1
    assert (await api.get(f"{NEWER}?fieldSelector=involvedObject.name%3Dp")).status == 400


async def test_both_are_there_after_a_restart(api: Conversation) -> None:
    await api.post(CORE, core_event())
    await api.restart()
    assert (await api.get(f"{NEWER}/e")).body["note"] == "it runs"
