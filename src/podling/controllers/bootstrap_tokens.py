"""Bootstrap tokens: the ConfigMap `cluster-info` of kube-public, by which who joins knows the cluster, is
there, those tokens that may sign it do so, and those that have expired are deleted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from datetime import datetime
from itertools import product

import yaml
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key, there_is_done
from podling.model.rules.bootstrap_tokens import INFO as INFO_NAME
from podling.model.rules.bootstrap_tokens import (
    INFO_NAMESPACE,
    KUBECONFIG,
    PREFIX,
    SIGNATURE,
    expiration,
    has_expired,
    signature,
    told,
)
from podling.model.rules.service_endpoints import API_NAMESPACE, API_SERVICE
from podling.model.time import Clock
from podling.model.types.core import ConfigMap, Namespace, Secret
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.service import Endpoints

INFO: Key = (INFO_NAMESPACE, INFO_NAME)
PUBLISHED = "podling.io/published"
"""The annotation of a `cluster-info` that podling keeps up to date."""
_NAME = re.compile(rf"{PREFIX}([a-z0-9]{{6}})")


def signing_tokens(secrets: Iterable[Secret], now: datetime) -> dict[str, str]:
    """The tokens that may sign now: id → secret."""
    tokens = {}
    for one in secrets:
        said, named = told(one), _NAME.fullmatch(one.metadata.name)
        if (
            named is not None
            and said.get("token-id") == named[1]
            and said.get("token-secret")
            and said.get("usage-bootstrap-signing") == "true"
            and not has_expired(said, now)
        ):
            tokens[named[1]] = said["token-secret"]
    return tokens


def signed(info: ConfigMap, tokens: dict[str, str]) -> dict[str, str]:
    """The data of `cluster-info`, with the signatures of these tokens and of no others."""
    content = info.data.get(KUBECONFIG)
    if content is None:
        return info.data
    rest = {key: value for key, value in info.data.items() if not key.startswith(SIGNATURE)}
    return rest | {SIGNATURE + token: signature(content, token, key) for token, key in tokens.items()}


def cluster_info(server: str, authority: str) -> str:
    """The kubeconfig of a cluster for whoever joins it, as kubeadm writes it. `authority` is in PEM."""
    of = {"certificate-authority-data": base64.b64encode(authority.encode()).decode(), "server": server}
    document = {
        "apiVersion": "v1",
        "clusters": [{"cluster": of, "name": ""}],
        "contexts": None,
        "current-context": "",
        "kind": "Config",
        "users": None,
    }
    return yaml.safe_dump(document, sort_keys=False)


class ClusterInfo:
    """Publishes where the API server is and whom to trust. What another server of the service `kubernetes`
    has published stays, if its authority is the same; and so does what is not podling's. After the first
    time a server leaves alone what any of them has published, and all if it is none of that service: servers
    that do not know of each other, or trust others, would write in turns."""

    name = "cluster-info"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        infos: Informer[ConfigMap],
        server: str,
        authority: str,
    ) -> None:
        """`server` is a URL, `authority` in PEM. `infos` need not show other ConfigMaps."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._namespaces, self._infos = client, namespaces, infos
        self._server, self._authority = server, authority
        self._wanted = cluster_info(server, authority)
        self._begins = True
        namespaces.subscribe(self._changed)
        infos.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get("", INFO_NAMESPACE) is None:
            return
        standing = self._infos.get(*INFO)
        if standing is None:
            meta = ObjectMeta(name=INFO_NAME, namespace=INFO_NAMESPACE, annotations={PUBLISHED: "true"})
            with there_is_done():
                await self._client.create(ConfigMap(metadata=meta, data={KUBECONFIG: self._wanted}))
        elif PUBLISHED in standing.metadata.annotations:
            found = standing.data.get(KUBECONFIG, "")
            if found != self._wanted and await self._is_to_replace(found):
                await self._client.update(replace(standing, data={**standing.data, KUBECONFIG: self._wanted}))
        self._begins = False

    async def _is_to_replace(self, found: str) -> bool:
        places: list[str] = []
        with gone_is_done():
            for subset in (await self._client.get(Endpoints, API_SERVICE, API_NAMESPACE)).subsets:
                pairs = product(subset.addresses, subset.ports)
                places += [f"https://{address.ip}:{port.port}" for address, port in pairs]
        if self._begins:
            return found not in [cluster_info(place, self._authority) for place in places]
        return self._server in places and not any(f"server: {place}\n" in found for place in places)

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        one = new or old
        if one is not None and one.metadata.name in INFO:
            self.queue.add(INFO)


class BootstrapSigner:
    name = "bootstrapsigner"

    def __init__(
        self, client: Client, infos: Informer[ConfigMap], secrets: Informer[Secret], clock: Clock
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._infos, self._secrets = infos, secrets
        infos.subscribe(own_key(self.queue, INFO[1]))
        secrets.subscribe(self._secret_changed)

    async def reconcile(self, key: Key) -> None:
        info = self._infos.get(*INFO)
        if key != INFO or info is None:
            return
        data = signed(info, signing_tokens(self._secrets.items(), self._clock.now()))
        if data != info.data:
            with gone_is_done():
                await self._client.update(replace(info, data=data))

    def _secret_changed(self, old: Secret | None, new: Secret | None) -> None:
        self.queue.add(INFO)


class TokenCleaner:
    name = "tokencleaner"

    def __init__(self, client: Client, secrets: Informer[Secret], clock: Clock) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._secrets, self._clock = client, secrets, clock
        secrets.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        secret, now = self._secrets.get(*key), self._clock.now()
        if secret is None:
            return
        if has_expired(told(secret), now):
            meta = secret.metadata
            with gone_is_done():
                await self._client.delete(Secret, meta.name, meta.namespace, uid=meta.uid)
        elif until := expiration(told(secret)):
            self.queue.add_after(key, (until - now).total_seconds())
