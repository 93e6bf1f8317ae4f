"""R-SYS-8: a watch of every kind tells of the same changes as Kubernetes' does, in the same order and form.

The same writes are made to each kind on both servers. Some watches are open before them, others begin after
them at a version in between; each is read until it tells of the last object that was written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import aiohttp
import pytest

from peer import counted
from peer.every_kind import Sample, samples
from peer.masks import Masks
from peer.named_differences import CLAIMS, SETTLED, unnamed
from peer.sequence import MERGE_PATCH, Found, make_namespace, unlike
from peer.server import USER_AGENT, Server
from podling.apiserver.kinds.kinds import KINDS

META = "g=meta.k8s.io"
TABLE = f"application/json;as=Table;v=v1;{META}"
METADATA = f"application/json;as=PartialObjectMetadata;v=v1;{META}"
AT_ONCE = 4
"""Kinds whose watches are open at the same time."""
SHARES = 5
"""A kind has one part in so many of the watches, and the next kind the next part."""
PATIENCE = 30.0
"""Seconds until all that was written must have been told of."""
COMPACT = json.JSONEncoder(separators=(",", ":"))
"""As Kubernetes writes JSON: what it keeps as it came may not change, not even by a space."""
NOT_OLDER = "resourceVersionMatch=NotOlderThan"
STATUS_PARTS = {kind.resource for kind in KINDS if "status" in kind.subresources}


class Watch(NamedTuple):
    """`query` may have `{w}`, `{x}` in it: the version at which that object was written."""

    query: str
    accept: str = "application/json"


SELECTED = "labelSelector=tier%3Dtwo"
OTHERS = "fieldSelector=metadata.name%21%3D{name}"
BEFORE = (
    Watch(""), Watch("resourceVersion=0"), Watch("resourceVersion={w}"),
    Watch(f"{SELECTED}&resourceVersion={{w}}"),
    Watch(f"{OTHERS}&resourceVersion={{w}}"), Watch(SELECTED), Watch("resourceVersion={w}", TABLE),
    Watch("resourceVersion={w}&includeObject=None", TABLE),
    Watch("resourceVersion={w}&includeObject=Object", TABLE),
    Watch(f"{SELECTED}&resourceVersion={{w}}", TABLE), Watch(f"{SELECTED}&resourceVersion={{w}}", METADATA),
    Watch("resourceVersion={w}&allowWatchBookmarks=false", METADATA),
    Watch(f"sendInitialEvents=true&{NOT_OLDER}&allowWatchBookmarks=true"),
    Watch(f"sendInitialEvents=true&{NOT_OLDER}&allowWatchBookmarks=true", TABLE),
    Watch(f"sendInitialEvents=true&{NOT_OLDER}&allowWatchBookmarks=true", METADATA),
)  # fmt: skip
"""Open while the writes are made."""
AFTER = (
    Watch(""), Watch("resourceVersion=0"), Watch("resourceVersion={w}"), Watch("resourceVersion={x}"),
    Watch("resourceVersion={y}"), Watch(f"{SELECTED}&resourceVersion={{w}}"),
    Watch(f"{OTHERS}&resourceVersion={{x}}"),
    Watch("resourceVersion={x}", TABLE), Watch("resourceVersion={w}", METADATA), Watch("", TABLE),
    Watch(f"{SELECTED}&resourceVersion=0", METADATA),
    Watch(f"sendInitialEvents=true&{NOT_OLDER}&resourceVersion=0"),
    Watch(f"sendInitialEvents=true&{NOT_OLDER}&resourceVersion={{w}}&allowWatchBookmarks=true"),
    Watch(f"sendInitialEvents=false&{NOT_OLDER}&resourceVersion={{x}}"),
    Watch(f"sendInitialEvents=false&{NOT_OLDER}&resourceVersion={{x}}&allowWatchBookmarks=true&{SELECTED}"),
)  # fmt: skip
"""Begun when all is written."""
REFUSED = (
    "resourceVersion=x", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan",
    "sendInitialEvents=true",
    "sendInitialEvents=true&resourceVersionMatch=Exact", "labelSelector=a%20b", "fieldSelector=nothing%3Dx",
    "timeoutSeconds=x", "continue=x", f"continue=x&{NOT_OLDER}", "sendInitialEvents=false", "limit=x",
)  # fmt: skip


class Write(NamedTuple):
    method: str
    target: str
    body: Any = None
    content_type: str = "application/json"
    version: str = ""
    """The letter by which the version of the answer is known."""


def writes(sample: Sample) -> Iterator[Write]:
    x, y = sample.item("x"), sample.item("y")
    yield Write("POST", sample.items, sample.body("x"), version="x")
    yield Write("POST", f"{sample.items}?dryRun=All", sample.body("v"))
    if sample.resource.kind not in CLAIMS.what:
        yield _patch(x, {})
    yield _patch(x, {"metadata": {"annotations": {"a": "b"}}})
    yield _patch(x, {"metadata": {"annotations": {"a": "b"}}})
    yield _patch(f"{x}?dryRun=All", {"metadata": {"annotations": {"a": "c"}}})
    yield _patch(x, {"metadata": {"labels": {"tier": "two"}}})
    if sample.resource in STATUS_PARTS:
        yield _patch(f"{x}/status", {"metadata": {"annotations": {"of": "status"}}})
    yield Write("POST", sample.items, sample.body("y", labels={"tier": "two"}), version="y")
    yield _patch(y, {"metadata": {"annotations": {"a": "b"}}})
    yield _patch(y, {"metadata": {"labels": {"tier": "one"}}})
    yield _patch(y, {"metadata": {"annotations": {"a": "c"}}})
    yield _patch(x, {"metadata": {"finalizers": ["peer.test/keep"]}})
    yield Write("DELETE", x)
    yield _patch(x, {"metadata": {"annotations": {"a": "d"}}})
    yield _patch(x, {"metadata": {"finalizers": None}})
    yield Write("DELETE", f"{sample.item('w')}?dryRun=All")
    yield Write("DELETE", y)
    yield Write("DELETE", sample.item("w"))
    yield Write("POST", sample.items, sample.body("z", labels={"tier": "two"}), version="z")


def removal(sample: Sample) -> Iterator[Write]:
    """So that nothing is left for other tests, whoever protects it."""
    for letter in "wxyz":
        item = sample.item(letter)
        yield Write("DELETE", f"{item}?gracePeriodSeconds=0")
        yield _patch(item, {"metadata": {"finalizers": None}})
        if sample.resource.kind == "Namespace":
            yield Write("PUT", f"{item}/finalize", {"metadata": {"name": sample.called(letter)}})


def _patch(target: str, body: Any) -> Write:
    return Write("PATCH", target, body, MERGE_PATCH)


class Told(NamedTuple):
    """What a server answered: to the writes, and, by watch, the events of each."""

    answers: Sequence[Any]
    events: Mapping[str, Any]


class Client(NamedTuple):
    """`of`: the name of the kind that is asked about."""

    session: aiohttp.ClientSession
    server: Server
    of: str

    async def write(self, write: Write, namespace: str) -> Any:
        target = write.target.replace("{ns}", namespace)
        counted.sent(self.server.name, write.method, target, self.of)
        async with self.session.request(
            write.method,
            self.server.url + target,
            data=None if write.body is None else COMPACT.encode(write.body).replace("{ns}", namespace),
            headers={"Content-Type": write.content_type},
            ssl=self.server.tls,
        ) as said:
            return {"code": said.status, "body": await said.json()}

    @asynccontextmanager
    async def watch(self, target: str, accept: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Entered when the watch has begun."""
        counted.sent(self.server.name, "GET", target, self.of)
        headers, tls = {"Accept": accept}, self.server.tls
        async with self.session.get(self.server.url + target, headers=headers, ssl=tls) as said:
            yield said


async def told(server: Server, sample: Sample, namespace: str) -> Told:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=PATIENCE)
    headers = {"User-Agent": USER_AGENT}
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
        client = Client(session, server, sample.name)
        answers = [await client.write(Write("POST", sample.items, sample.body("w")), namespace)]
        assert answers[0]["code"] == 201, str(answers[0])[:600]
        versions = {"w": answers[0]["body"]["metadata"]["resourceVersion"], "name": sample.called("y")}

        async def events(watch: Watch, begun: asyncio.Event) -> list[Any]:
            query = watch.query.format(**versions)
            target = f"{sample.items.replace('{ns}', namespace)}?watch=1&{query}"
            async with client.watch(target, watch.accept) as said:
                begun.set()
                return await until_last(said, sample)

        early, late, wrong = shared(BEFORE, sample), shared(AFTER, sample), shared(REFUSED, sample)
        async with asyncio.TaskGroup() as watching:
            open_ = [asyncio.Event() for _ in early]
            before = [watching.create_task(events(*pair)) for pair in zip(early, open_, strict=True)]
            for begun in open_:
                await begun.wait()
            for write in writes(sample):
                answers.append(await client.write(write, namespace))
                if write.version:
                    versions[write.version] = answers[-1]["body"]["metadata"]["resourceVersion"]
        # What begins at version 0 begins at what a server has in memory, which may be behind its storage.
        fresh = Write("GET", f"{sample.items}?limit=1&{NOT_OLDER}&resourceVersion={versions['z']}")
        assert (await client.write(fresh, namespace))["code"] == 200
        async with asyncio.TaskGroup() as watching:
            after = [watching.create_task(events(watch, asyncio.Event())) for watch in late]
            target = f"{sample.items.replace('{ns}', namespace)}?watch=1&timeoutSeconds=1&"
            refused = [watching.create_task(answer(client, target + query, sample)) for query in wrong]
        for write in removal(sample):
            await client.write(write, namespace)
    named: dict[str, Any] = {
        f"before {watch}": task.result() for watch, task in zip(early, before, strict=True)
    }
    named |= {f"after {watch}": task.result() for watch, task in zip(late, after, strict=True)}
    named |= {query: task.result() for query, task in zip(wrong, refused, strict=True)}
    return Told(answers, named)


T = TypeVar("T")


def shared(every: Sequence[T], sample: Sample) -> Sequence[T]:
    return every[SAMPLES.index(sample) % SHARES :: SHARES]


async def until_last(said: aiohttp.ClientResponse, sample: Sample) -> list[Any]:
    """The events up to that of the last object."""
    found = []
    async for line in said.content:
        found.append(line.decode())
        if f'"{sample.called("z")}"' in found[-1] and '"ADDED"' in found[-1]:
            break
    return ours(found, sample)


def ours(lines: Sequence[str], sample: Sample) -> list[Any]:
    """The events of the objects written here. Other bookmarks than that after the first events come as it
    suits the server, and nothing of the object in that one means anything. The columns of a table come with
    the first event, which may be of another's object."""
    found = []
    columns = None
    for line in lines:
        event = json.loads(line)
        is_table = event["object"]["kind"] == "Table"
        if is_table:
            columns = event["object"]["columnDefinitions"] or columns
        if event["type"] == "BOOKMARK":
            if "initial-events-end" in line:
                found.append({"type": "BOOKMARK", "kind": event["object"]["kind"]})
        elif sample.resource.namespaced or any(f'"{sample.called(letter)}"' in line for letter in "wxyz"):
            if is_table:
                event["object"]["columnDefinitions"], columns = columns, None
            found.append(event)
    return found


async def answer(client: Client, target: str, sample: Sample) -> dict[str, Any]:
    async with client.watch(target, "application/json") as said:
        lines = (await said.text()).splitlines()
        body: Any = json.loads(lines[0]) if said.status != 200 else ours(lines, sample)
        return {"code": said.status, "body": body}


def compared(theirs: Told, ours: Told) -> dict[str, list[Found]]:
    """The differences by what was asked."""
    found = {}
    sides = [masked(theirs), masked(ours)]
    for name in sides[0]:
        pairs = unlike(sides[0][name], sides[1][name], "")
        if listed := unnamed([Found(0, *pair) for pair in pairs]):
            found[name] = listed
    return found


def masked(told: Told) -> dict[str, Any]:
    masks = Masks()
    answers = [masks.answer(number, one) for number, one in enumerate(told.answers)]
    events = {
        name: masks.answer(len(answers) + number, said)
        for number, (name, said) in enumerate(told.events.items())
    }
    return {"answers": answers, **events}


async def everything(server: Server) -> dict[str, Told]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(sample: Sample) -> Told:
        namespace = f"watches-{SAMPLES.index(sample)}"
        async with turns:
            with server.asking() as asking:
                make_namespace(asking, namespace)
            return await told(server, sample, namespace)

    return dict(zip((one.name for one in SAMPLES), await asyncio.gather(*map(one, SAMPLES)), strict=True))


SAMPLES = [one for one in samples() if one.resource.kind not in SETTLED.what]


def remove_leftovers(server: Server) -> None:
    """Objects outside of namespaces that others left with a finalizer, which nobody here takes away."""
    with server.asking() as asking:
        for sample in SAMPLES:
            for letter in "" if sample.resource.namespaced else "wxyz":
                patch = {"metadata": {"finalizers": None}}
                asking.ask("PATCH", sample.item(letter), patch, Content_Type="application/merge-patch+json")
                asking.ask("DELETE", sample.item(letter))


@pytest.fixture(scope="module")
def both(kubernetes: Server, podling: Server) -> tuple[dict[str, Told], dict[str, Told]]:
    for server in (kubernetes, podling):
        remove_leftovers(server)

    async def ask() -> tuple[dict[str, Told], dict[str, Told]]:
        return await asyncio.gather(everything(kubernetes), everything(podling))

    return asyncio.run(ask())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_watch_tells_what_kubernetes_tells(
    sample: Sample, both: tuple[dict[str, Told], dict[str, Told]]
) -> None:
    theirs, ours = (told[sample.name] for told in both)
    found = compared(theirs, ours)
    assert not found, "\n".join(
        f"{name}\n"
        + "\n".join(f"    {one.path}\n      {one.kubernetes!r}\n      {one.podling!r}" for one in listed)
        for name, listed in found.items()
    )
