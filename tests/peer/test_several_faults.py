"""R-SYS-8: objects with several faults at once are refused with the same causes in the same order as by
Kubernetes.

The faults are made by chance from the types of the fields; `PODLING_TEST_SEED` makes others. Where Kubernetes
tells faults in the order of a map of Go, which is another each time, none are made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random
from typing import Any

import msgspec
import pytest

from peer.fields import variations
from peer.named_differences import OWN_FIELDS, UNREADABLE, unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from peer.test_fields import METADATA, WAYS, items_of, plain
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.scheme import by_kind

NAMESPACE = "several-faults"
OF_A_KIND = 6
MOST_FAULTS = 4
TRIES = 8
BY_CHANCE: Mapping[str, tuple[str, ...]] = {
    "HorizontalPodAutoscaler": ("spec.metrics",),
    "LimitRange": ("spec.limits",),
    # Who may have it is judged by admission, in Kubernetes before the rest.
    "ResourceClaim": ("spec.devices.requests", "status.allocation.devices.results"),
    "ResourceClaimTemplate": ("spec.spec.devices.requests",),
}
STATEFUL_SETS = "/apis/apps/v1/namespaces/{ns}/statefulsets?dryRun=All"
SERVICES = "/api/v1/namespaces/{ns}/services"
STATEFUL_SET = {
    "podManagementPolicy": "x",
    "updateStrategy": {"type": "y", "rollingUpdate": {"partition": -1}},
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "z"},
    "volumeClaimTemplates": [{"metadata": {"name": "q"}, "spec": {}}],
    "replicas": -1,
    "minReadySeconds": -1,
    "ordinals": {"start": -1},
    "serviceName": "No Name",
    "selector": {"matchLabels": {"a": "No Good!"}},
    "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "No Name", "image": ""}], "restartPolicy": "Never"},
    },
}
SERVICE = {
    "type": "LoadBalancer",
    "externalTrafficPolicy": "Local",
    "loadBalancerClass": "a/b",
    "selector": {"a": "b"},
    "ports": [{"port": 80}],
}
FAULTS: tuple[tuple[str, Any], ...] = (
    ("loadBalancerClass", "No Good"), ("clusterIP", "10.0.0.9"), ("ports", [{"port": 0}]),
    ("selector", {"a": "No Good!"}), ("sessionAffinity", "x"), ("externalIPs", ["x"]), ("type", "y"),
    ("loadBalancerSourceRanges", ["x"]), ("internalTrafficPolicy", "x"), ("ipFamilyPolicy", "x"),
)  # fmt: skip

TYPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ClusterIP", {}), ("NodePort", {}), ("LoadBalancer", {}), ("ExternalName", {"externalName": "a.b"}),
)  # fmt: skip
FIELDS: tuple[dict[str, Any], ...] = (
    {}, {"ipFamilyPolicy": ""}, {"ipFamilyPolicy": "SingleStack"}, {"ipFamilies": []}, {"clusterIPs": []},
    {"clusterIP": "None"}, {"allocateLoadBalancerNodePorts": False}, {"internalTrafficPolicy": "Local"},
    {"internalTrafficPolicy": "x"}, {"loadBalancerClass": "c/d"}, {"externalTrafficPolicy": "Local"},
    {"ports": [{"port": 80, "name": "a", "nodePort": 30776}, {"port": 81, "name": "b", "nodePort": 30776}]},
)  # fmt: skip
"""Of a PUT with a cluster IP alone Kubernetes makes an ExternalName that it refuses in any other way."""


def faulty(
    random: Random, type_: type[msgspec.Struct], base: Mapping[str, Any], way: str, without: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    """Objects of which several fields are changed, each with the paths that were."""
    for _ in range(OF_A_KIND):
        made, paths = base, list[str]()
        for _ in range(random.randint(2, MOST_FAULTS)):
            tried = [
                (path, changed)
                for path, _, changed in variations(type_, made)
                if path.startswith("status") == (way == "status")
                and not path.startswith((*METADATA, *without))
                and not any(path.startswith(one) or one.startswith(path) for one in paths)
            ]
            for path, changed in random.sample(tried, min(TRIES, len(tried))):
                if is_read(changed, type_):
                    made = changed
                    paths.append(path)
                    break
        yield ", ".join(paths), made


def is_read(body: Any, type_: type[msgspec.Struct]) -> bool:
    """A body that is none of its type is refused before anything else is looked at."""
    try:
        json.decode_sent(msgspec.json.encode(body), type_)
    except StatusError:
        return False
    return True


@pytest.mark.parametrize(
    ("sample", "way"),
    WAYS,
    ids=lambda part: part if isinstance(part, str) else f"{part['kind']}.{part['apiVersion']}",
)
def test_causes_come_in_order(sample: dict[str, Any], way: str, kubernetes: Server, podling: Server) -> None:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    assert resource
    base, items = plain(sample, resource), items_of(resource)
    item = f"{items}/{base['metadata']['name']}"
    method, target = {
        "create": ("POST", items), "update": ("PUT", item), "status": ("PUT", f"{item}/status"),
    }[way]  # fmt: skip
    seed = os.environ.get("PODLING_TEST_SEED", "1")
    random = Random(f"{seed} {sample['apiVersion']} {sample['kind']} {way}")
    without = (*OWN_FIELDS.what, *UNREADABLE.what, *BY_CHANCE.get(resource.kind, ()))
    asks = [
        Ask(method, f"{target}?dryRun=All", body, what=paths)
        for paths, body in faulty(random, resource.type, base, way, without)
    ]
    if way != "create":
        asks = [Ask("POST", items, base), *asks, Ask("DELETE", f"{item}?gracePeriodSeconds=0")]
    sequence = Compared(way, asks, apart=True)
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"PODLING_TEST_SEED={seed}\n{shown(sequence, found)}"


def test_a_stateful_set_with_every_fault(kubernetes: Server, podling: Server) -> None:
    body = {"metadata": {"name": "s"}, "spec": STATEFUL_SET}
    sequence = Compared("stateful set", [Ask("POST", STATEFUL_SETS, body)])
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def test_a_service_with_two_faults(kubernetes: Server, podling: Server) -> None:
    """New, and changed so."""
    bodies = [
        {"metadata": {"name": "s"}, "spec": {**SERVICE, **dict(faults)}} for faults in combinations(FAULTS, 2)
    ]
    dry = [
        Ask(method, f"{target}?dryRun=All", body)
        for method, target in (("POST", SERVICES), ("PUT", f"{SERVICES}/s"))
        for body in bodies
    ]
    made = Ask("POST", SERVICES, {"metadata": {"name": "s"}, "spec": SERVICE})
    sequence = Compared("service", [made, *dry, Ask("DELETE", f"{SERVICES}/s")], apart=True)
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def test_a_service_becomes_another(kubernetes: Server, podling: Server) -> None:
    """Of another type, with fields that it had or that the other has not."""
    asks = []
    for number, (type_, fields) in enumerate(TYPES):
        spec = {"ports": [{"port": 80}], "selector": {"a": "b"}, "type": type_, **fields}
        base = {"metadata": {"name": f"s-{number}"}, "spec": spec}
        asks.append(Ask("POST", SERVICES, base))
        for other, of_other in TYPES:
            for more in FIELDS:
                wanted = {"type": other, **of_other, **more}
                target = f"{SERVICES}/s-{number}?dryRun=All"
                asks.append(Ask("PATCH", target, {"spec": wanted}, {"Content_Type": MERGE_PATCH}))
                if other != "ExternalName" or "clusterIP" not in more:
                    whole = {"ports": [{"port": 80}], "selector": {"a": "b"}, **wanted}
                    asks.append(Ask("PUT", target, {**base, "spec": whole}))
    for type_, fields in TYPES:
        for more in FIELDS:
            spec = {"ports": [{"port": 80}], "type": type_, **fields, **more}
            asks.append(Ask("POST", f"{SERVICES}?dryRun=All", {"metadata": {"name": "new"}, "spec": spec}))
    asks += [Ask("DELETE", f"{SERVICES}/s-{number}") for number, _ in enumerate(TYPES)]
    sequence = Compared("becomes another", asks, apart=True)
    found = unnamed(differences(sequence, "becomes-another", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
