"""Encryption at rest: reads from a file which resources are sealed and with which keys, keeps an eye on the
KMS plugins that it names, and takes what the file says later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from podling.apiserver.kinds.kind import storage_key
from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.apiserver.rules.encryption import (
    ANY,
    KeysConfiguration,
    KMSConfiguration,
    ProviderConfiguration,
    providers_of,
    read_configuration,
    seconds_of,
    secret_of,
)
from podling.assemble.encryption_metrics import FAILURE, SUCCESS, Reloads, encryption_metrics
from podling.assemble.followed import follow, read_file
from podling.machine.start import StartError
from podling.model.errors import joined
from podling.model.scheme import RESOURCES
from podling.process.waits import woken
from podling.storage.ciphers import AesCbc, AesGcm, SecretBox
from podling.storage.sealing import PLAIN, SEALED, Key, Provider, Sealing
from podling.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from podling.storage.kms.envelope import Kms


class Encryption:
    """What of the storage is sealed, and how that is going."""

    def __init__(self, file: Path, content: bytes) -> None:
        """Raises ConfigurationError."""
        self._file = file
        self._content = content
        self.reloads = Reloads(_hashed(content))
        keys_of, self.plugins = _read(file, content)
        self.sealing = Sealing(keys_of)
        self._changed = asyncio.Event()

    def fault(self) -> str:
        """What is wrong with KMS plugins."""
        faults = [
            f"kms-provider-{index}: {plugin.fault}"
            for index, plugin in enumerate(self.plugins)
            if plugin.fault
        ]
        return joined(faults)

    def metrics(self) -> Iterable[Metric]:
        return encryption_metrics(self.reloads, self.plugins)

    @asynccontextmanager
    async def kept_up(self, storage: SqliteStorage, *, reloads: bool) -> AsyncIterator[None]:
        """Plugins are looked at, and the file counts as it is if `reloads`, while the block runs."""
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._watch_plugins())]
            if reloads:
                running.append(tasks.create_task(self._follow(storage)))
            try:
                yield
            finally:
                for task in running:
                    task.cancel()

    def close(self) -> None:
        _close(self.plugins)

    async def _follow(self, storage: SqliteStorage) -> None:
        """Take what the file says whenever it changes; it stays as it was if that cannot be used."""

        async def put(now: bytes) -> None:
            try:
                await self._take(now, storage)
            except ConfigurationError:
                self.reloads.count(FAILURE)
                raise
            self.reloads.count(SUCCESS)

        await follow("the encryption configuration", self._file, self._content, put)

    async def _take(self, content: bytes, storage: SqliteStorage) -> None:
        """Raises ConfigurationError."""
        keys_of, plugins = _read(self._file, content)
        sealing = Sealing(keys_of)
        try:
            await _look(plugins)
            for plugin in plugins:
                if plugin.fault:
                    raise ConfigurationError(plugin.fault)
            if key := await storage.unknown_to(sealing):
                raise ConfigurationError(f"no key that it gives opens {key}")
        except BaseException:
            _close(plugins)
            raise
        before, self.plugins = self.plugins, plugins
        self.sealing.keys_of = keys_of
        self.reloads.hash = _hashed(content)
        self._content = content
        self._changed.set()
        _close(before)

    async def _watch_plugins(self) -> None:
        """Ask each plugin how it is when it is time to."""
        while True:
            self._changed.clear()
            if self.plugins:
                await woken(self._changed, min(plugin.pause for plugin in self.plugins))
            else:
                await self._changed.wait()
            await _look(self.plugins)


async def _look(plugins: Sequence[Kms]) -> None:
    await asyncio.gather(*(asyncio.to_thread(plugin.look) for plugin in plugins))


def _close(plugins: Sequence[Kms]) -> None:
    for plugin in plugins:
        plugin.plugin.close()


async def encryption_of(file: Path) -> Encryption:
    """Raises StartError."""
    try:
        encryption = Encryption(file, file.read_bytes())
    except (OSError, ConfigurationError) as error:
        raise StartError(f"the encryption configuration {file} cannot be used: {error}") from error
    await _look(encryption.plugins)
    return encryption


def _read(file: Path, content: bytes) -> tuple[dict[str, Sequence[Key]], list[Kms]]:
    """The keys of each resource, by the prefix of its storage keys, and the plugins in their order. Raises
    ConfigurationError."""
    if not content:
        raise ConfigurationError("it is empty")
    plugins: list[Kms] = []
    providers = providers_of(read_file(file, content, read_configuration))
    keys = {
        named: [key for one in given for key in _keys(one, plugins)] for named, given in providers.items()
    }
    keys_of: dict[str, Sequence[Key]] = {}
    for resource in RESOURCES:
        for named in ((resource.plural, resource.group), ("*", resource.group), ANY):
            if named in keys:
                keys_of[storage_key(resource)] = keys[named]
                break
    return keys_of, plugins


def _keys(provider: ProviderConfiguration, plugins: list[Kms]) -> list[Key]:
    """`plugins` gets that of a KMS."""
    if provider.aesgcm is not None:
        return _named("aesgcm", provider.aesgcm, AesGcm)
    if provider.aescbc is not None:
        return _named("aescbc", provider.aescbc, AesCbc)
    if provider.secretbox is not None:
        return _named("secretbox", provider.secretbox, SecretBox)
    if provider.kms is not None:
        return [_of_plugin(provider.kms, plugins)]
    return list(PLAIN)


def _of_plugin(kms: KMSConfiguration, plugins: list[Kms]) -> Key:
    # gRPC is for those who have a KMS: it takes a tenth of a second to import.
    from podling.storage.kms.envelope import Kms
    from podling.storage.kms.plugin import GrpcPlugin

    plugin = Kms(kms.name, GrpcPlugin(kms.endpoint, seconds_of(kms)))
    plugins.append(plugin)
    return Key(SEALED + f"kms:v2:{kms.name}:".encode(), plugin)


def _named(provider: str, given: KeysConfiguration, of: Callable[[bytes], Provider]) -> list[Key]:
    return [Key(SEALED + f"{provider}:v1:{key.name}:".encode(), of(secret_of(key))) for key in given.keys]


def _hashed(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"
