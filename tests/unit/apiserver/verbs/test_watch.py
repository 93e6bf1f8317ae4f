"""R-SYS-1: watches: from now, from a revision, from the beginning; selectors, bookmarks, endings."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.verbs.watch import batches, one_name
from podling.model.selectors import parse_field_selector
from podling.storage.memory import MemoryStorage
from podling.watch.cache import ResourceCache

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{CONFIGS}?watch=true"


async def make(api: Conversation, name: str, **labels: str) -> Any:
    return (await api.post(CONFIGS, {"metadata": {"name": name, "labels": labels}})).body


async def test_without_a_revision_it_starts_with_what_is_there(api: Conversation) -> None:
    made = await make(api, "a")
    async with await api.watch(WATCH) as watch:
        assert await watch.next() == {"type": "ADDED", "object": made}
        await make(api, "b")
        assert await watch.names(1) == ["ADDED b"]


async def test_from_a_revision_nothing_is_missed_or_repeated(api: Conversation) -> None:
    start = (await make(api, "a"))["metadata"]["resourceVersion"]
    await make(api, "b")
    await api.patch(f"{CONFIGS}/a", {"data": {"k": "v"}})
    async with await api.watch(f"{WATCH}&resourceVersion={start}") as watch:
        await api.delete(f"{CONFIGS}/b")
        assert await watch.names(3) == ["ADDED b", "MODIFIED a", "DELETED b"]


async def test_a_selector_turns_changes_into_comings_and_goings(api: Conversation) -> None:
    await make(api, "a", app="x")
    async with await api.watch(f"{WATCH}&labelSelector=app%3Dx") as watch:
        await make(api, "b", app="y")
        await api.patch(f"{CONFIGS}/b", {"metadata": {"labels": {"app": "x"}}})
        await api.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"app": "y"}}})
        assert await watch.names(3) == ["ADDED a", "ADDED b", "DELETED a"]


async def test_one_object(api: Conversation) -> None:
    async with await api.watch(f"{WATCH}&fieldSelector=metadata.name%3Db") as watch:
        await make(api, "a")
        await make(api, "b")
        assert await watch.names(1) == ["ADDED b"]


async def test_other_namespaces_are_not_seen(api: Conversation) -> None:
    async with await api.watch(WATCH) as watch:
        await api.post("/api/v1/namespaces/other/configmaps", {"metadata": {"name": "x"}})
        await make(api, "a")
        assert await watch.names(1) == ["ADDED a"]


async def test_initial_events_end_with_a_bookmark(api: Conversation) -> None:
    await make(api, "a")
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with await api.watch(WATCH + query) as watch:
        assert await watch.names(1) == ["ADDED a"]
        mark = await watch.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_revision_that_is_too_old(api: Conversation) -> None:
    await make(api, "a")
    await api.storage.compact(api.storage.revision)
    await api.restart()
    async with await api.watch(f"{WATCH}&resourceVersion=1") as watch:
        error = await watch.next()
        assert error["type"] == "ERROR"
        assert error["object"]["code"] == 410 and error["object"]["reason"] == "Expired"
        assert error["object"]["message"].startswith("too old resource version: 1 (")
        assert await watch.next() is None


async def test_nothing_is_told_before_the_revision_asked_for(api: Conversation) -> None:
    """As Kubernetes has it: the watch waits for what is yet to come, however long."""
    await make(api, "a")
    ahead = api.storage.revision + 1
    async with await api.watch(f"{WATCH}&resourceVersion={ahead}") as watch:
        await make(api, "b")
        await make(api, "c")
        seen = await watch.next()
        assert (seen["type"], seen["object"]["metadata"]["name"]) == ("ADDED", "c")


INITIAL = f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


async def test_the_objects_there_are_at_a_revision_that_does_not_come(api: Conversation) -> None:
    async with await api.watch(f"{INITIAL}&resourceVersion=99999") as watch:
        error = await watch.next()
        assert error["type"] == "ERROR" and error["object"]["code"] == 504
        assert error["object"]["message"].startswith("Timeout: Too large resource version: 99999, current: ")
        assert await watch.next() is None


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def test_a_table_says_where_the_objects_there_are_end(api: Conversation) -> None:
    await make(api, "a")
    async with await api.watch(INITIAL, Accept=TABLE) as watch:
        assert [row["cells"][0] for row in (await watch.next())["object"]["rows"]] == ["a"]
        end = await watch.next()
    (row,) = end["object"]["rows"]
    assert (end["type"], end["object"]["kind"], row["cells"]) == ("BOOKMARK", "Table", ["", 0, "<unknown>"])
    assert row["object"]["metadata"] == {
        "annotations": {"k8s.io/initial-events-end": "true"},
        "resourceVersion": end["object"]["metadata"]["resourceVersion"],
    }


async def test_tables_say_once_what_their_columns_are(api: Conversation) -> None:
    await make(api, "a")
    await make(api, "b")
    async with await api.watch(WATCH, Accept=TABLE) as watch:
        first, second = await watch.next(), await watch.next()
        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        await make(api, "c")
        third = await watch.next()
    for event, name in ((second, "b"), (third, "c")):
        assert event["object"]["columnDefinitions"] is None
        assert event["object"]["rows"][0]["cells"][0] == name


async def test_it_ends_when_the_server_does(api: Conversation) -> None:
    async with await api.watch(WATCH) as watch:
        api.server.close()
        assert await watch.next() is None


async def test_it_ends_after_its_timeout() -> None:
    cache = ResourceCache(MemoryStorage(), "/registry/x/", bytes, kind="X", api_version="v1")
    assert [batch async for batch in batches(cache.watch("/registry/x/"), timeout=0)] == []


async def test_contradicting_options(api: Conversation) -> None:
    answer = await api.get(f"{WATCH}&sendInitialEvents=true")
    assert answer.status == 422


async def test_as_a_table(api: Conversation) -> None:
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    await make(api, "a")
    async with await api.watch(WATCH, Accept=table) as watch:
        event = await watch.next()
        assert event["type"] == "ADDED" and event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"][0] == "a"


async def test_the_older_path_of_a_collection(api: Conversation) -> None:
    async with await api.watch("/api/v1/watch/namespaces/default/configmaps") as watch:
        await make(api, "a")
        assert await watch.names(1) == ["ADDED a"]


async def test_the_older_path_of_one_object(api: Conversation) -> None:
    await make(api, "a")
    await make(api, "b")
    async with await api.watch("/api/v1/watch/namespaces/default/configmaps/b") as watch:
        await api.delete("/api/v1/namespaces/default/configmaps/a")
        await api.delete("/api/v1/namespaces/default/configmaps/b")
        assert await watch.names(2) == ["ADDED b", "DELETED b"]


async def test_one_object_and_a_selector_of_another(api: Conversation) -> None:
    path = "/api/v1/watch/namespaces/default/configmaps/b?fieldSelector=metadata.name%3Da"
    answer = await api.get(path)
    assert (answer.status, answer.message) == (
        400,
        "fieldSelector metadata.name doesn't match requested name",
    )


@pytest.mark.parametrize(
    ("selector", "name", "expected"),
    [
        ("", "a", "metadata.name=a"),
        ("", "a,b=c\\", "metadata.name=a\\,b\\=c\\\\"),
        ("metadata.name=a", "a", "metadata.name=a"),
    ],
)
def test_the_selector_of_one_object(selector: str, name: str, expected: str) -> None:
    assert one_name(selector, name) == expected
    assert parse_field_selector(expected).exact("metadata.name") == name


async def test_a_watch_goes_on_from_no_page(api: Conversation) -> None:
    answer = await api.get(f"{WATCH}&continue=x")
    assert answer.status == 422 and "forbidden when continue is provided" in answer.message


async def test_no_watch_in_yaml(api: Conversation) -> None:
    answer = await api.get(WATCH, Accept="application/yaml")
    assert answer.status == 406


async def test_a_watch_as_a_list_ends_with_the_first_event(api: Conversation) -> None:
    await api.post(CONFIGS, {"metadata": {"name": "listed"}})
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    response = await api.raw("GET", f"{CONFIGS}?watch=1", Accept=accept)
    assert isinstance(response.body, AsyncGenerator)
    assert [frame async for frame in response.body] == []
