"""Copying all objects from one store to another, of any back ends, so that it can be cut short and go on.

The target holds `MIGRATING` from the first write until it was found equal. Whoever opens such a target to
serve from it refuses, and only a migration of the same cluster goes on with it. To go on is to write what
differs, so a source that was written to in between is followed, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from podling.storage.interface import MIGRATING, Record, Storage, Write

CLUSTER = "/registry/namespaces/kube-system"
"""The namespace whose uid identifies a cluster."""
MOST_WRITES = 100
"""Of one transaction; etcd takes 128."""
MOST_BYTES = 1_000_000
"""Of one transaction, but for a value that is larger; etcd takes 1.5 MiB."""
MADE_ANEW = ("/registry/ranges/", "/registry/peerserverleases/")
"""What API servers keep beside objects and make from them."""
NAMED = 3
"""Keys that a refusal names."""


class MigrationError(Exception):
    """The migration cannot be done, or is not complete; the message is for the user."""


class Moved(NamedTuple):
    objects: int
    """In the source, and so in the target."""
    written: int
    """By this run."""


async def cluster_of(source: Storage) -> str:
    """The uid of the cluster that a source holds. Raises MigrationError if it holds no whole one."""
    if await source.get(MIGRATING) is not None:
        raise MigrationError("the source is itself the target of a migration that was cut short")
    namespace = await source.get(CLUSTER)
    if namespace is None:
        raise MigrationError("the source holds no cluster: it has no namespace kube-system")
    uid: str = json.loads(namespace.value)["metadata"]["uid"]
    return uid


async def copy(uid: str, source: Storage, target: Storage) -> Moved:
    """Make the objects of the target those of the source, which are the cluster's with that uid. Raises
    MigrationError before anything is written, and what the stores raise."""
    kept = await _objects(source)
    standing = {record.key: record for record in await _objects(target)}
    mark = standing.pop(MIGRATING, None)
    if mark is None and standing:
        raise MigrationError(f"the target is not empty: it holds {named(standing)}; nothing was changed")
    if mark is not None and mark.value.decode() != uid:
        raise MigrationError("the target is that of another cluster's migration; nothing was changed")
    if mark is None:
        await target.create(MIGRATING, uid.encode())
    written = 0
    for writes in groups(changes(kept, standing)):
        await target.commit(writes)
        written += len(writes)
    return Moved(len(kept), written)


async def finish(source: Storage, target: Storage, since: int) -> None:
    """Compare all objects, and let the target be served. `since` is the source's revision when the copy
    began. Raises MigrationError if they differ or the source was written to since; then the target stays as
    it is, and the migration can go on."""
    if await source.current() != since:
        raise MigrationError("the source was written to meanwhile: stop who writes, and run this again")
    standing = {record.key: record for record in await _objects(target)}
    mark = standing.pop(MIGRATING)
    if differing := [write.key for write in changes(await _objects(source), standing)]:
        raise MigrationError(f"source and target differ in {named(differing)}: run this again")
    await target.delete(MIGRATING, mark.revision)


async def _objects(storage: Storage) -> Sequence[Record]:
    return [record for record in (await storage.list("")).records if not record.key.startswith(MADE_ANEW)]


def changes(kept: Iterable[Record], standing: Mapping[str, Record]) -> Iterator[Write]:
    """What makes a target with `standing` hold what is `kept`."""
    wanted = {record.key for record in kept}
    for record in standing.values():
        if record.key not in wanted:
            yield Write(record.key, None, record.revision)
    for record in kept:
        known = standing.get(record.key)
        if known is None or known.value != record.value:
            yield Write(record.key, record.value, known.revision if known else None)


def groups(writes: Iterable[Write]) -> Iterator[list[Write]]:
    """Transactions of at most MOST_WRITES and MOST_BYTES."""
    group: list[Write] = []
    size = 0
    for write in writes:
        length = len(write.key) + len(write.value or b"")
        if group and (len(group) == MOST_WRITES or size + length > MOST_BYTES):
            yield group
            group, size = [], 0
        group.append(write)
        size += length
    if group:
        yield group


def named(keys: Iterable[str]) -> str:
    """The number of keys and the first of them."""
    names = sorted(keys)
    more = ", ..." if len(names) > NAMED else ""
    return f"{len(names)} objects ({', '.join(names[:NAMED])}{more})"
