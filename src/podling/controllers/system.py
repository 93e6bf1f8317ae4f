"""Objects of the system: the system namespaces, the two system priority classes, and the ConfigMap by which
API servers behind this one know whom to believe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificates
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, there_is_done
from podling.model.time import Clock
from podling.model.types.core import ConfigMap, Namespace
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.scheduling import SYSTEM_CLASSES, PriorityClass

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
BELIEVED: Key = ("kube-system", "extension-apiserver-authentication")
AUTHORITIES = ("client-ca-file", "requestheader-client-ca-file")
"""The keys of BELIEVED that have certificates; all others have names, as JSON."""
KEYS = (
    *AUTHORITIES,
    *(
        f"requestheader-{what}"
        for what in (
            "allowed-names",
            "username-headers",
            "uid-headers",
            "group-headers",
            "extra-headers-prefix",
        )
    ),
)
"""All that BELIEVED has."""


class SystemPriorityClasses:
    """Creates the two classes once; a deleted one is created again at the next start, as in Kubernetes."""

    name = "system-priority-classes"

    def __init__(self, client: Client) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        for name in SYSTEM_CLASSES:
            self.queue.add(("", name))

    async def reconcile(self, key: Key) -> None:
        value, description = SYSTEM_CLASSES[key[1]]
        made = PriorityClass(metadata=ObjectMeta(name=key[1]), value=value, description=description)
        with there_is_done():
            await self._client.create(made)


class SystemNamespaces:
    name = "system-namespaces"

    def __init__(self, client: Client, namespaces: Informer[Namespace]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        namespaces.subscribe(self._changed)
        for name in SYSTEM_NAMESPACES:
            self.queue.add(("", name))

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get(*key) is None:
            await self._client.create(Namespace(metadata=ObjectMeta(name=key[1])))

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is None and old is not None and old.metadata.name in SYSTEM_NAMESPACES:
            self.queue.add(("", old.metadata.name))


class BelievedClients:
    """Publishes in the ConfigMap BELIEVED which clients and which proxies the API server believes, so that
    those behind it do, too. As in Kubernetes, what another API server has published stays beside it, until
    its certificates expire."""

    name = "cluster-authentication-trust"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        published: Informer[ConfigMap],
        believed: Mapping[str, Sequence[str]],
        clock: Clock,
    ) -> None:
        """`published` need not show other ConfigMaps; `believed` is by the keys of the ConfigMap, and
        certificates are in PEM."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces, self._published = namespaces, published
        self._believed = believed
        self._clock = clock
        namespaces.subscribe(self._changed)
        published.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get("", BELIEVED[0]) is None:
            return
        known = self._published.get(*BELIEVED)
        data = combined(known.data if known else {}, self._believed, self._clock.now())
        if known is None:
            metadata = ObjectMeta(namespace=BELIEVED[0], name=BELIEVED[1])
            with there_is_done():
                await self._client.create(ConfigMap(metadata=metadata, data=data))
        # What is neither's is no reason to write: another version's server would write it again.
        elif not data.items() <= known.data.items():
            await self._client.update(replace(known, data=data))

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        one = new or old
        if one is not None and one.metadata.name in BELIEVED:
            self.queue.add(BELIEVED)


def combined(
    published: Mapping[str, str], believed: Mapping[str, Sequence[str]], now: datetime
) -> dict[str, str]:
    """What is to be published: each thing once, no certificate that has expired, and nothing else. What this
    server does not say and another has is of both."""
    data = {}
    for key in KEYS:
        if key not in believed and key not in published:
            continue
        wanted = believed.get(key, ())
        if key in AUTHORITIES:
            parts = [published.get(key, ""), *wanted]
            data[key] = "".join(dict.fromkeys(one for part in parts for one in unexpired(part, now)))
        else:
            names = dict.fromkeys([*names_in(published.get(key, "[]")), *wanted])
            data[key] = msgspec.json.encode(list(names)).decode()
    return data


def unexpired(bundle: str, now: datetime) -> list[str]:
    try:
        found = load_pem_x509_certificates(bundle.encode())
    except ValueError:
        return []
    return [one.public_bytes(Encoding.PEM).decode() for one in found if one.not_valid_after_utc > now]


def names_in(text: str) -> list[str]:
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        return []
