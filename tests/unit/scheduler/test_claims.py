"""A pod waits for its claims, and the condition says for which (in kube-scheduler's words)."""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.rules.volume_binding import BIND_COMPLETED as BOUND
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import StorageClass
from podling.scheduler.claims import UNBOUND, missing

CLAIMS: dict[str, dict[str, Any]] = {
    "unbound": {},
    "named": {"spec": {"volumeName": "here"}},
    "of-no-class": {"spec": {"storageClassName": "none"}},
    "waits": {"spec": {"storageClassName": "waits"}},
    "deleted": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    "lost": {"spec": {"volumeName": "gone"}, "status": {"phase": "Lost"}},
    "bound": {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "here"}},
    "astray": {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "gone"}},
    "p-own": {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "here"}},
}
VOLUMES = {"here": PersistentVolume()}
CLASSES = {"waits": StorageClass(volume_binding_mode="WaitForFirstConsumer")}


def pod(*claims: str) -> Pod:
    volumes = [
        {"name": name, "ephemeral": {}}
        if name in ("own", "other")
        else {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in claims
    ]
    return from_data({"metadata": {"name": "p", "namespace": "ns"}, "spec": {"volumes": volumes}}, Pod)


def claim_of(namespace: str, name: str) -> PersistentVolumeClaim | None:
    assert namespace == "ns"
    return from_data(CLAIMS[name], PersistentVolumeClaim) if name in CLAIMS else None


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ((), ""),
        (("bound", "own"), ""),
        (("unbound",), UNBOUND),
        (("named",), UNBOUND),
        (("of-no-class", "waits"), UNBOUND),
        (("waits", "bound"), ""),
        (("unbound", "missing"), 'persistentvolumeclaim "missing" not found'),
        (("deleted", "missing"), 'persistentvolumeclaim "deleted" is being deleted'),
        (("lost",), 'persistentvolumeclaim "lost" bound to non-existent persistentvolume "gone"'),
        (("astray",), 'persistentvolume "gone" not found'),
        (("other",), 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-other"'),
    ],
)
def test_what_a_pod_waits_for(claims: tuple[str, ...], told: Any) -> None:
    found = missing(
        pod(*claims), claim_of, lambda _, name: VOLUMES.get(name), lambda _, name: CLASSES.get(name)
    )
    assert found == told
