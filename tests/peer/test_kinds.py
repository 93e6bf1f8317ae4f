"""R-SYS-8: an object of every kind comes back as from Kubernetes, with its nulls and defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from podling.model.scheme import by_kind

SAMPLES = Path(__file__).parents[1] / "e2e/samples.yaml"
NAMESPACE = "every-kind"
APART = frozenset({"Namespace", "Node"})
"""A namespace is what all are in; Kubernetes taints new nodes until a condition says they are ready."""
PUBLISHED = frozenset({"CustomResourceDefinition"})
"""Kubernetes publishes what they define, which other tests would meet: they are tried, and not made."""


def made(sample: dict[str, Any]) -> Ask:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    assert resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    within = "namespaces/{ns}/" if resource.namespaced else ""
    text = json.dumps(sample).replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"')
    body = json.loads(text)
    body["metadata"].pop("finalizers", None)
    if resource.kind == "Pod":
        body["spec"] = {"containers": body["spec"]["containers"], "automountServiceAccountToken": False}
    tried = "?dryRun=All" if resource.kind in PUBLISHED else ""
    return Ask("POST", f"{base}/{within}{resource.plural}{tried}", body)


@pytest.mark.usefixtures("no_ranges_left")
def test_every_kind_is_created_alike(kubernetes: Server, podling: Server) -> None:
    samples = [one for one in yaml.safe_load(SAMPLES.read_text()) if one["kind"] not in APART]
    sequence = Compared("every kind", [made(one) for one in samples])
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
