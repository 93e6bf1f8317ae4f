"""R-SYS-1: lists: selectors, pages with their continue tokens, revisions that are past or yet to come."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.verbs.list import (
    JUDGED_AT_ONCE,
    Continuation,
    decode_continue,
    encode_continue,
    until_fresh,
)
from podling.model.errors import StatusError
from podling.storage.memory import MemoryStorage
from podling.watch.cache import ResourceCache

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
ALL = "/api/v1/configmaps"


@pytest.fixture
async def configs(api: Conversation) -> None:
    for name, namespace, app in (
        ("a", "default", "x"),
        ("b", "default", "y"),
        ("c", "default", "x"),
        ("d", "other", "x"),
    ):
        body = {"metadata": {"name": name, "labels": {"app": app}}}
        await api.post(f"/api/v1/namespaces/{namespace}/configmaps", body)


def names(answer: Any) -> str:
    return "".join(item["metadata"]["name"] for item in answer.body["items"])


async def test_the_shape_of_a_list(api: Conversation, configs: None) -> None:
    answer = await api.get(CONFIGS)
    assert list(answer.body) == ["kind", "apiVersion", "metadata", "items"]
    assert answer.body["kind"] == "ConfigMapList" and answer.body["apiVersion"] == "v1"
    assert answer.body["metadata"] == {"resourceVersion": str(api.storage.revision)}
    assert list(answer.body["items"][0]) == ["metadata"], "items of a list do not repeat their kind"


async def test_an_empty_list(api: Conversation) -> None:
    assert (await api.get(CONFIGS)).body["items"] == []


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (CONFIGS, "abc"),
        (ALL, "abcd"),
        ("/api/v1/namespaces/nowhere/configmaps", ""),
        (f"{CONFIGS}?labelSelector=app%3Dx", "ac"),
        (f"{CONFIGS}?labelSelector=app+notin+(x)", "b"),
        (f"{ALL}?fieldSelector=metadata.name%3Db", "b"),
        (f"{ALL}?fieldSelector=metadata.namespace!%3Ddefault", "d"),
        (f"{ALL}?labelSelector=app%3Dx&fieldSelector=metadata.namespace%3Ddefault", "ac"),
        (f"{CONFIGS}?resourceVersion=0", "abc"),
    ],
)
async def test_selections(api: Conversation, configs: None, target: str, found: str) -> None:
    assert names(await api.get(target)) == found


async def test_pages(api: Conversation, configs: None) -> None:
    first = await api.get(f"{ALL}?limit=2")
    meta = first.body["metadata"]
    assert names(first) == "ab" and meta["remainingItemCount"] == 2
    rest = await api.get(f"{ALL}?limit=2&continue={meta['continue']}")
    assert names(rest) == "cd" and "continue" not in rest.body["metadata"]
    assert rest.body["metadata"]["resourceVersion"] == meta["resourceVersion"]


async def test_a_page_ends_where_the_items_end(api: Conversation, configs: None) -> None:
    assert "continue" not in (await api.get(f"{ALL}?limit=4")).body["metadata"]


async def test_pages_of_a_selection_do_not_count_the_rest(api: Conversation, configs: None) -> None:
    first = await api.get(f"{ALL}?limit=2&labelSelector=app%3Dx")
    meta = first.body["metadata"]
    assert names(first) == "ac" and "remainingItemCount" not in meta
    rest = await api.get(f"{ALL}?limit=2&labelSelector=app%3Dx&continue={meta['continue']}")
    assert names(rest) == "d"


async def test_others_have_their_turns_while_many_are_judged(api: Conversation) -> None:
    """And what they write meanwhile is not in the list, which is of one state."""
    many = 4 * JUDGED_AT_ONCE
    for number in range(many):
        await api.post(CONFIGS, {"metadata": {"name": f"c{number:03}", "labels": {"app": "x"}}})
    turns = 0

    async def count() -> None:
        nonlocal turns
        while turns < many:
            turns += 1
            if turns == 2:
                await api.delete(f"{CONFIGS}/c{many - 1:03}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        counting = tasks.create_task(count())
        answer = await api.get(f"{CONFIGS}?labelSelector=app%3Dx")
        counting.cancel()
    assert turns >= many // JUDGED_AT_ONCE
    assert len(answer.body["items"]) == many
    assert len((await api.get(f"{CONFIGS}?labelSelector=app%3Dx")).body["items"]) == many - 1


async def test_all_pages_are_of_one_state(api: Conversation, configs: None) -> None:
    first = await api.get(f"{ALL}?limit=1")
    before = (await api.get(f"{CONFIGS}/c")).body
    await api.delete(f"{CONFIGS}/b")
    await api.patch(f"{CONFIGS}/c", {"data": {"k": "v"}})
    await api.post(CONFIGS, {"metadata": {"name": "bb"}})
    second = await api.get(f"{ALL}?limit=2&continue={first.body['metadata']['continue']}")
    assert names(second) == "bc" and second.body["items"][1]["metadata"] == before["metadata"]
    assert second.body["metadata"]["remainingItemCount"] == 1
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]
    rest = await api.get(f"{ALL}?continue={second.body['metadata']['continue']}")
    assert names(rest) == "d"


async def test_a_list_that_took_too_long_may_be_ended_as_things_are(api: Conversation, configs: None) -> None:
    """Word for word as Kubernetes answers, once etcd has compacted what the first page was of."""
    first = await api.get(f"{ALL}?limit=1")
    await api.delete(f"{CONFIGS}/b")
    await api.storage.compact(api.storage.revision)
    expired = await api.get(f"{ALL}?limit=2&continue={first.body['metadata']['continue']}")
    token = expired.body["metadata"].pop("continue")
    assert expired.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this response to "
        "retrieve the remainder of the results. Continuing with the provided token results in an "
        "inconsistent list - objects that were created, modified, or deleted between the time the first "
        "chunk was returned and now may show up in the list.",
        "reason": "Expired",
        "code": 410,
    }
    await api.post(CONFIGS, {"metadata": {"name": "bb"}})
    rest = await api.get(f"{ALL}?limit=2&continue={token}")
    assert names(rest) == "bbc"
    assert rest.body["metadata"]["resourceVersion"] == str(api.storage.revision)
    await api.post(CONFIGS, {"metadata": {"name": "cc"}})
    last = await api.get(f"{ALL}?limit=2&continue={rest.body['metadata']['continue']}")
    assert names(last) == "d", "from there on it is of one state again"


async def test_a_collection_is_not_deleted_by_a_page_that_is_too_old(
    api: Conversation, configs: None
) -> None:
    first = await api.get(f"{ALL}?limit=1")
    await api.delete(f"{CONFIGS}/b")
    await api.storage.compact(api.storage.revision)
    expired = await api.delete(f"{CONFIGS}?limit=2&continue={first.body['metadata']['continue']}")
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    assert expired.body["metadata"]["continue"]


async def test_a_list_of_an_earlier_state(api: Conversation, configs: None) -> None:
    revision = (await api.get(ALL)).body["metadata"]["resourceVersion"]
    await api.delete(f"{CONFIGS}/b")
    assert names(await api.get(f"{ALL}?resourceVersion={revision}")) == "acd"
    exact = await api.get(f"{ALL}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert names(exact) == "abcd" and exact.body["metadata"]["resourceVersion"] == revision
    paged = await api.get(f"{ALL}?resourceVersion={revision}&limit=3")
    assert names(paged) == "abc"
    newer = await api.get(f"{ALL}?resourceVersion={revision}&limit=3&resourceVersionMatch=NotOlderThan")
    assert names(newer) == "acd"


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("labelSelector=a%3D%3D%3Db", 400, "unable to parse requirement"),
        (
            "fieldSelector=spec.x%3D1",
            400,
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("fieldSelector=nonsense", 400, "invalid selector"),
        ("continue=!", 400, "invalid continue token: continue key is not valid"),
        ("limit=x", 400, "invalid syntax"),
        ("resourceVersion=x", 400, "invalid resource version: resourceVersion: Invalid value"),
        ("resourceVersion=99999", 504, "Too large resource version: 99999, current: "),
    ],
)
async def test_refusals(api: Conversation, configs: None, query: str, status: int, message: str) -> None:
    answer = await api.get(f"{ALL}?{query}")
    assert answer.status == status and message in answer.message


async def test_what_is_at_hand_comes_in_one_piece(api: Conversation, configs: None) -> None:
    """Kubernetes' cache has no pages of what it has at revision 0."""
    every = (await api.get(ALL)).body["items"]
    answer = await api.get(f"{ALL}?limit=1&resourceVersion=0")
    assert answer.body["items"] == every and len(every) > 1
    assert list(answer.body["metadata"]) == ["resourceVersion"]
    assert len((await api.get(f"{ALL}?limit=1")).body["items"]) == 1


async def test_a_state_that_is_forgotten(api: Conversation, configs: None) -> None:
    await api.storage.compact(api.storage.revision)
    for query in ("resourceVersion=1&resourceVersionMatch=Exact", "resourceVersion=1&limit=2"):
        answer = await api.get(f"{ALL}?{query}")
        assert (answer.status, answer.body["reason"]) == (410, "Expired")
        assert answer.message == "The resourceVersion for the provided list is too old."
        assert answer.body["metadata"] == {}
    for query in ("resourceVersion=1", "resourceVersion=1&resourceVersionMatch=NotOlderThan"):
        assert names(await api.get(f"{ALL}?{query}")) == "abcd"


async def test_cluster_wide_kinds(api: Conversation) -> None:
    assert names(await api.get("/api/v1/namespaces")) == "defaultother"


async def test_a_namespace_as_the_field_of_what_is_in_none(api: Conversation) -> None:
    """A label conversion of their own makes nodes and namespaces refuse it; others are just in none."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses?fieldSelector=metadata.namespace"
    await api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "c"}, "value": 1})
    assert (await api.get(f"{classes}%3Ddefault")).body["items"] == []
    assert len((await api.get(f"{classes}!%3Ddefault")).body["items"]) == 1
    refused = await api.get("/api/v1/nodes?fieldSelector=metadata.namespace%3Ddefault")
    assert refused.message == "field label not supported: metadata.namespace"


@given(
    st.integers(1, 2**63 - 1) | st.none(),
    st.from_regex(r"[a-z0-9-]{1,20}(/[a-z0-9.-]{1,20})?", fullmatch=True),
)
def test_a_continue_token_is_read_as_it_was_written(revision: int | None, key: str) -> None:
    if {".", ".."}.isdisjoint(key.split("/")):
        continuation = Continuation(revision, key)
        assert decode_continue(encode_continue(continuation)) == continuation


@pytest.mark.parametrize(
    "token",
    [
        "!",
        "abc",
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b'{"v":"v2","rv":1,"start":"a\\u0000"}').decode(),
        base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":0,"start":"a\\u0000"}').decode(),
        base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}').decode(),
        base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"../a\\u0000"}').decode(),
    ],
)
def test_a_forged_token_is_refused(token: str) -> None:
    with pytest.raises(StatusError) as raised:
        decode_continue(token)
    assert raised.value.code == 400


@given(st.binary(max_size=40))
def test_only_a_status_escapes(data: bytes) -> None:
    with pytest.raises(StatusError):
        decode_continue(base64.urlsafe_b64encode(b"x" + data).decode())


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
