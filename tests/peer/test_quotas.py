"""R-SYS-8: what a ResourceQuota refuses, counts and says of itself is what Kubernetes' does."""

from __future__ import annotations

from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

BASE = "/api/v1/namespaces/{ns}"
QUOTAS, PODS, MAPS, SERVICES = (
    f"{BASE}/{plural}" for plural in ("resourcequotas", "pods", "configmaps", "services")
)
HARD = {"pods": "1", "configmaps": "2", "requests.cpu": "500m", "count/services": "1"}
USED = {"pods": "0", "configmaps": "0", "requests.cpu": "0", "count/services": "0"}


def _quota(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def _pod(name: str, cpu: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": False, "containers": [container]},
    }


def _map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _scoped(operator: str, values: list[str]) -> dict[str, Any]:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    return {"matchExpressions": [expression]}


COUNTED = (
    Ask("POST", QUOTAS, _quota(hard=HARD)),
    Ask(
        "PATCH", f"{QUOTAS}/q/status", {"status": {"hard": HARD, "used": USED}}, {"Content_Type": MERGE_PATCH}
    ),
    Ask("POST", PODS, _pod("a")),
    Ask("POST", PODS, _pod("a", "600m")),
    Ask("POST", f"{PODS}?dryRun=All", _pod("a", "300m")),
    Ask("GET", f"{QUOTAS}/q"),
    Ask("POST", PODS, _pod("a", "300m")),
    Ask("POST", PODS, _pod("b", "300m")),
    Ask("GET", f"{QUOTAS}/q"),
    *(Ask("POST", MAPS, _map(name)) for name in "abc"),
    Ask("POST", f"{MAPS}?dryRun=All", _map("c")),
    Ask("DELETE", f"{MAPS}/a"),
    Ask("GET", f"{QUOTAS}/q"),
    *(Ask("POST", SERVICES, {**_map(name), "spec": {"ports": [{"port": 1}]}}) for name in "st"),
    Ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0"),
    Ask("GET", QUOTAS),
)
REFUSED = (
    _quota(hard={"pods": "-1"}), _quota(hard={"pods": "1.5"}), _quota(hard={"x y": "1"}),
    _quota(hard={"x": "1"}),
    _quota(hard={"pods": "1", "services": "1"}, scopes=["BestEffort"]),
    _quota(hard={"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
    _quota(hard={"pods": "1"}, scopes=["X"]),
    _quota(hard={"pods": "1"}, scopeSelector=_scoped("In", [])),
    _quota(hard={"pods": "1"}, scopeSelector=_scoped("Exists", ["a"])),
    _quota(hard={"pods": "1"}, scopeSelector=_scoped("Among", ["a"])),
)  # fmt: skip
SEQUENCES = (
    Compared("what is counted", COUNTED),
    Compared("what is refused", [Ask("POST", f"{QUOTAS}?dryRun=All", wrong) for wrong in REFUSED]),
)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_a_quota_is_that_of_kubernetes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"quota-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
