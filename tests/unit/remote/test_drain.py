"""Which pods a node loses when it is emptied."""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.types.pod import Pod
from podling.remote.drain import plan


def pod(name: str, owner: str = "", phase: str = "Running", **annotations: str) -> Pod:
    owners: list[dict[str, Any]] = []
    if owner:
        owners = [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "1", "controller": True}]
    meta = {"name": name, "namespace": "ns", "ownerReferences": owners, "annotations": annotations}
    return from_data({"metadata": meta, "spec": {"containers": []}, "status": {"phase": phase}}, Pod)


@pytest.mark.parametrize(
    ("found", "evicted", "unmanaged"),
    [
        (pod("a", "ReplicaSet"), True, False),
        (pod("a"), True, True),
        (pod("a", phase="Succeeded"), True, False),
        (pod("a", "DaemonSet"), False, False),
        (pod("a", "DaemonSet", "Failed"), True, False),
        (pod("a", "Node", **{"kubernetes.io/config.mirror": "x"}), False, False),
    ],
)
def test_as_kubectl_drain(found: Pod, evicted: bool, unmanaged: bool) -> None:
    planned = plan([found])
    assert (bool(planned.evicted), planned.unmanaged) == (evicted, ["ns/a"] if unmanaged else [])
