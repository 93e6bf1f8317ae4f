"""Moving all objects from the data directory to etcd, or back, while nobody writes to either.

Revisions begin anew. In a data directory they go on far above the source's; in etcd, which counts by itself,
what came before is compacted. So who watched before the move is told to list again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from podling.assemble.etcd import connect, open_etcd
from podling.assemble.settle import EtcdOptions
from podling.machine.instance import Instance
from podling.machine.start import DamagedError, StartError, hold, writing
from podling.model.codec.json import decode
from podling.model.time import parse_time
from podling.model.types.coordination import Lease
from podling.storage.etcd.connection import EtcdError
from podling.storage.etcd.keys import OF_SERVERS, of_etcd
from podling.storage.etcd.store import COMPACTED, read_all
from podling.storage.interface import Storage, StorageClosedError, UnknownOutcomeError
from podling.storage.migration import MADE_ANEW, MigrationError, Moved, cluster_of, copy, finish, named
from podling.storage.sqlite.backup import go_on
from podling.storage.sqlite.store import open as open_sqlite
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

IDENTITIES = "/registry/coordination.k8s.io/leases/kube-system/apiserver-"
LATELY = timedelta(seconds=15)


async def renewed_lately(source: Storage, now: datetime) -> str:
    """The name of a kube-apiserver that has said within LATELY that it runs, by the Lease that it renews
    every ten seconds; empty if none has."""
    for record in (await source.list(IDENTITIES)).records:
        lease = decode(record.value, Lease)
        if lease.spec.renew_time and now - parse_time(lease.spec.renew_time) < LATELY:
            return lease.metadata.name
    return ""


def migrate(instance: Instance, options: EtcdOptions, *, to_etcd: bool) -> Moved:
    """Raises StartError; then the source is unchanged, and the target is as it was or can be gone on with."""
    with hold(instance), writing(instance.data_dir):
        if to_etcd and not instance.database.exists():
            raise StartError(f"{instance.data_dir} holds no objects of a podling")
        instance.have_data_dir()
        try:
            return asyncio.run(_migrate(instance, options, to_etcd))
        except DamagedFileError as error:
            raise DamagedError(str(error)) from error
        except (DataFileError, MigrationError) as error:
            raise StartError(str(error)) from error
        except (StorageClosedError, UnknownOutcomeError) as error:
            raise StartError(f"the migration was cut short, run it again to go on: {error}") from error


async def _migrate(instance: Instance, options: EtcdOptions, to_etcd: bool) -> Moved:
    connection = await connect(options)
    try:
        found, _ = await read_all(connection)
    except EtcdError as error:
        raise StartError(f"--etcd-servers: {error}") from error
    finally:
        await connection.close()
    others = [one.decode() for one in found if one != COMPACTED and of_etcd(one.decode()) is None]
    if any(key.startswith(OF_SERVERS.encode()) for key in found):
        raise StartError("--etcd-servers: an API server runs on this etcd: stop it and wait 15 seconds")
    if not to_etcd:
        others = [key for key in others if not key.startswith(MADE_ANEW)]
    if others:
        raise StartError(
            "--etcd-servers: this etcd holds what podling does not know: "
            f"{named(others)}; nothing was changed"
        )

    @asynccontextmanager
    async def opened(etcd: bool) -> AsyncIterator[Storage]:
        storage: Storage = await (open_etcd(options) if etcd else open_sqlite(instance.database))
        try:
            yield storage
        finally:
            await storage.close()

    async with opened(not to_etcd) as source:
        uid, since = await cluster_of(source), source.revision
        if renewed := await renewed_lately(source, datetime.now(UTC)):
            raise StartError(f"--etcd-servers: {renewed} runs on this etcd: stop it and wait 15 seconds")
        async with opened(to_etcd) as begun:
            copied = await copy(uid, source, begun)
            if to_etcd:
                await begun.compact(begun.revision)
        if not to_etcd:
            go_on(instance.database, since)
        # Opened anew, so that what is compared is what was kept.
        async with opened(to_etcd) as kept:
            await finish(source, kept, since)
    if not to_etcd:
        instance.shared_file.unlink(missing_ok=True)
    return copied
