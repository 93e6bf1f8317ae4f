"""R-SYS-8: every field of every kind, set to good values and to bad ones, is answered as by Kubernetes: in
new objects, in updates and in statuses.

The kinds are those of `tests/e2e/samples.yaml`, from whose objects the changes start. A change is asked as a
dry run, and each answer stands for itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from peer.fields import variations
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from podling.model.codec.fields import fields_of
from podling.model.scheme import Resource, by_kind

SAMPLES = yaml.safe_load((Path(__file__).parents[1] / "e2e/samples.yaml").read_text())
NAMESPACE = "fields"
OWN = ("spec.volumes[0].container", "status.debugContainerStatuses", "metadata.generation")
"""What Kubernetes does not have, or counts otherwise."""
EMPTY = (
    "spec.overhead",
    "spec.resources.claims",
    "spec.ephemeralContainers[0].ports",
    "spec.ephemeralContainers[0].res",
)
"""Beginnings of paths where an empty list is something else to Kubernetes than none."""
OPEN = frozenset({
    "CertificateSigningRequest", "CustomResourceDefinition", "DaemonSet", "DeviceClass",
    "HorizontalPodAutoscaler",
    "MutatingAdmissionPolicy", "NetworkPolicy", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice",
    "ServiceCIDR", "StatefulSet", "ValidatingAdmissionPolicy", "CronJob",
})  # fmt: skip
"""Kinds with tests of their own, and with fields that are answered otherwise here: above all the words about
expressions that do not compile."""
WRITTEN_MEANWHILE = "FlowSchema"
"""The kind whose status kube-apiserver itself writes: what becomes of one that is there is not compared."""
METADATA = ("metadata", "kind", "apiVersion")
METADATA_OF = ("ConfigMap", "create")
"""Where these are changed, too: the rules are those of all kinds."""
MOST = {"create": 900, "update": 150, "status": 400}
"""Requests of a sequence; of more, they are taken evenly."""


def asked(sample: dict[str, Any], way: str) -> Iterator[Ask]:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    assert resource
    items = items_of(resource)
    base = plain(sample, resource)
    item = f"{items}/{base['metadata']['name']}"
    method, target = {
        "create": ("POST", items), "update": ("PUT", item), "status": ("PUT", f"{item}/status"),
    }[way]  # fmt: skip
    asks = [
        Ask(method, f"{target}?dryRun=All", body, what=f"{path} = {value!r:.200}")
        for path, value, body in variations(resource.type, base)
        if path.startswith("status") == (way == "status")
        and not path.startswith(OWN)
        and ((resource.kind, way) == METADATA_OF or not path.startswith(METADATA))
        and not (value in ([], {}) and path.startswith(EMPTY))
    ]
    if way != "create":
        yield Ask("POST", items, base)
    yield from asks[:: -(-len(asks) // MOST[way]) or 1]
    if way != "create":
        yield Ask("DELETE", f"{item}?gracePeriodSeconds=0")


def items_of(resource: Resource) -> str:
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return f"{base}/{'namespaces/{ns}/' if resource.namespaced else ''}{resource.plural}"


def plain(sample: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """Without what keeps it from being deleted, and a pod that needs nothing."""
    body: dict[str, Any] = json.loads(
        json.dumps(sample).replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"')
    )
    body["metadata"].pop("finalizers", None)
    if resource.kind == "Pod":
        body["spec"] = {"containers": body["spec"]["containers"], "automountServiceAccountToken": False}
    return body


def has_status(sample: dict[str, Any]) -> bool:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    return resource is not None and "status" in fields_of(resource.type)


WAYS = [
    (sample, way)
    for sample in SAMPLES
    if sample["kind"] not in OPEN
    for way in ("create", "update", "status")
    if way != "status" or has_status(sample)
    if way == "create" or sample["kind"] != WRITTEN_MEANWHILE
]


@pytest.mark.parametrize(
    ("sample", "way"),
    WAYS,
    ids=lambda part: part if isinstance(part, str) else f"{part['kind']}.{part['apiVersion']}",
)
def test_every_field(sample: dict[str, Any], way: str, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(way, list(asked(sample, way)), apart=True)
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
