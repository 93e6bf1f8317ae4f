"""The ConfigMap `kube-root-ca.crt` in every namespace: what pods trust the API server by."""

from __future__ import annotations

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.model.config import ConfigMap
from podling.model.meta import ObjectMeta
from podling.model.namespace import Namespace

CONFIG_MAP = "kube-root-ca.crt"
DATA_KEY = "ca.crt"
DESCRIPTION = {
    "kubernetes.io/description": "The certificate authority that signs the API server's certificate."
}


class RootCA:
    name = "root-ca-certificate-publisher"

    def __init__(
        self, client: Client, namespaces: Informer[Namespace], config_maps: Informer[ConfigMap], ca: str
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._config_maps = config_maps
        self._data = {DATA_KEY: ca}
        namespaces.subscribe(self._namespace_changed)
        config_maps.subscribe(self._config_map_changed)

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        owner = self._namespaces.get("", namespace)
        if owner is None or owner.metadata.deletion_timestamp:
            return
        found = self._config_maps.get(namespace, name)
        if found is None:
            metadata = ObjectMeta(name=name, namespace=namespace, annotations=DESCRIPTION)
            await self._client.create(ConfigMap(metadata=metadata, data=self._data))
        elif found.data != self._data:
            await self._client.patch(
                ConfigMap, name, namespace, [_replace_data(self._data)], patch_type=JSON_PATCH
            )

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.queue.add((new.metadata.name, CONFIG_MAP))

    def _config_map_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        changed = new or old
        if changed is not None and changed.metadata.name == CONFIG_MAP:
            self.queue.add((changed.metadata.namespace, CONFIG_MAP))


JSON_PATCH = "application/json-patch+json"


def _replace_data(data: dict[str, str]) -> dict[str, object]:
    return {"op": "add", "path": "/data", "value": data}
