"""The pods that have a claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from podling.client.informer import Informer
from podling.model.rules.references import volume_claims_of
from podling.model.types.pod import Pod


class Claimers:
    """Kept with the informer, so that to find them costs what there are of them."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._by_claim: defaultdict[tuple[str, str], dict[str, Pod]] = defaultdict(dict)
        pods.subscribe(self._changed)

    def of(self, namespace: str, name: str) -> Collection[Pod]:
        key = namespace, name
        return list(self._by_claim[key].values()) if key in self._by_claim else ()

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            for name in volume_claims_of(old):
                key = old.metadata.namespace, name
                self._by_claim[key].pop(old.metadata.uid, None)
                if not self._by_claim[key]:
                    del self._by_claim[key]
        if new is not None:
            for name in volume_claims_of(new):
                self._by_claim[new.metadata.namespace, name][new.metadata.uid] = new
