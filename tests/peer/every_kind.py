"""An object of every kind, as many of them as a test needs, each with a name of its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from peer.sequence import MERGE_PATCH, Ask
from podling.model.scheme import RESOURCES, Resource, by_kind

SAMPLES = Path(__file__).parents[1] / "e2e/samples.yaml"
LABELS = {"peer": "every-kind", "tier": "one"}
SELECTED = "labelSelector=peer%3Devery-kind"
OLDER_SCALER = {
    "maxReplicas": 3,
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "s"},
}
PRIORITIES = {"groupPriorityMinimum": 1000, "versionPriority": 10}
PROTECTED = frozenset({"PersistentVolume", "PersistentVolumeClaim", "VolumeAttributesClass"})
"""Kinds whose objects have a finalizer of their own."""


class Sample(NamedTuple):
    """A kind with the object that `tests/e2e/samples.yaml` has of it."""

    resource: Resource
    base: dict[str, Any]

    @property
    def name(self) -> str:
        """Of tests."""
        return self.resource.qualified + (f".{self.resource.version}" if self.resource.view else "")

    @property
    def collection(self) -> str:
        """Of all namespaces."""
        base = (
            f"/apis/{self.resource.api_version}" if self.resource.group else f"/api/{self.resource.version}"
        )
        return f"{base}/{self.resource.plural}"

    @property
    def items(self) -> str:
        base, _, plural = self.collection.rpartition("/")
        return f"{base}/{'namespaces/{ns}/' if self.resource.namespaced else ''}{plural}"

    def called(self, letter: str) -> str:
        """The name of one object. Letters follow each other as names do."""
        number = ord(letter) - ord("a") + 1
        match self.resource.kind:
            case "IPAddress":
                return f"192.0.2.{number}"
            case "CustomResourceDefinition":
                return f"{letter}s.every-kind.test"
            case "APIService":
                return f"v{number}.every-kind.test"
            case "FlowSchema":
                # Of one name Kubernetes writes the status some six times a minute.
                return f"{{ns}}-{letter}"
        return letter if self.resource.namespaced else f"every-kind-{letter}"

    def item(self, letter: str = "x") -> str:
        return f"{self.items}/{self.called(letter)}"

    def body(self, letter: str = "x", **metadata: Any) -> dict[str, Any]:
        body = copy.deepcopy(self.base)
        body["metadata"] = {"name": self.called(letter), "labels": LABELS, **metadata}
        match self.resource.kind:
            case "CustomResourceDefinition":
                names = {"plural": f"{letter}s", "singular": letter, "kind": letter.upper()}
                body["spec"] |= {"group": "every-kind.test", "names": names}
            case "APIService":
                # Of one with a service Kubernetes finds out, at any time, that it is not there.
                version = self.called(letter).partition(".")[0]
                body["spec"] = {"group": "every-kind.test", "version": version, **PRIORITIES}
        return body


def _sample(given: dict[str, Any]) -> Sample:
    resource = by_kind(given["apiVersion"], given["kind"])
    assert resource
    base = json.loads(json.dumps(given).replace('"namespace": "default"', '"namespace": "{ns}"'))
    if resource.kind == "Pod":
        base["spec"] = {"containers": base["spec"]["containers"], "automountServiceAccountToken": False}
    return Sample(resource, base)


def samples() -> Sequence[Sample]:
    """One of every kind that is stored."""
    every = yaml.safe_load(SAMPLES.read_text())
    scaler = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "spec": OLDER_SCALER}
    return [_sample(one) for one in (*every, scaler)]


def reviews() -> Sequence[Resource]:
    return [resource for resource in RESOURCES if not resource.stored]


def removal(sample: Sample, letter: str = "x") -> Iterator[Ask]:
    """So that nothing is left for other tests."""
    item = sample.item(letter)
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0")
    if sample.resource.kind in (*PROTECTED, "Namespace"):
        yield Ask("PATCH", item, {"metadata": {"finalizers": None}}, {"Content_Type": MERGE_PATCH})
    if sample.resource.kind == "Namespace":
        yield Ask("PUT", f"{item}/finalize", {"metadata": {"name": sample.called(letter)}})
