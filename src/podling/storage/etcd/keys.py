"""Where kube-apiserver keeps an object in etcd, so that it may serve what podling stored, and podling what it
stored. Measured on kube-apiserver 1.36.2.

podling's keys name the group, Kubernetes' only that of custom resources, definitions and API services; five
resources have names of before they were renamed.
"""

from __future__ import annotations

from collections.abc import Mapping

from podling.model.scheme import RESOURCES

REGISTRY = "/registry/"
RENAMED = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
OF_SERVERS = f"{REGISTRY}masterleases/"
"""Under which each API server keeps its address for as long as it lives."""
NODE_PORTS = f"{REGISTRY}ranges/servicenodeports"
"""Where API servers agree on those that are given out."""
AGREED = (OF_SERVERS, NODE_PORTS)
"""What API servers tell each other: no objects, and podling's keys are Kubernetes'."""
GROUPED = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})


def _places() -> Mapping[str, str]:
    """Kubernetes' prefix of each resource by podling's; of custom resources they are the same."""
    return {
        f"{REGISTRY}{one.group}/{one.plural}/" if one.group else f"{REGISTRY}{one.plural}/": (
            f"{REGISTRY}{RENAMED.get(one.plural, one.plural)}/"
        )
        for one in RESOURCES
        if one.stored and not one.view and one.group not in GROUPED
    }


_TO = _places()
_FROM = {theirs: ours for ours, theirs in _TO.items()}


def in_etcd(key: str) -> str:
    """Kubernetes' key of an object, by podling's."""
    return _exchanged(key, _TO) or key


def of_etcd(key: str) -> str | None:
    """podling's key, by Kubernetes'; None for what is neither an object nor AGREED."""
    if key.startswith(AGREED):
        return key
    if found := _exchanged(key, _FROM):
        return found
    group = key.removeprefix(REGISTRY).partition("/")[0]
    return key if key.startswith(REGISTRY) and "." in group else None


def _exchanged(key: str, places: Mapping[str, str]) -> str | None:
    """`/registry/a/…` or `/registry/a/b/…` with another beginning."""
    end = len(REGISTRY) - 1
    for _ in range(2):
        end = key.find("/", end + 1)
        if end < 0:
            return None
        if place := places.get(key[: end + 1]):
            return place + key[end + 1 :]
    return None
