"""What `podling policies explain` says: who is let through, by which policy, and why not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from podling.model.codec.json import from_data
from podling.model.types.networking import NetworkPolicy
from podling.network.policy import PodFacts
from podling.network.policy_explain import Asked, End, end_of, explain
from podling.network.policy_metrics import CountedPolicies, policy_metrics
from podling.network.policy_table import dropped
from policy_oracle import OraclePod, World
from unit.network.test_policy import PORTS, SPEC

NAMESPACES = {"one": {"team": "a"}, "two": {"team": "b"}}
SERVER = PodFacts(("one", "server"), {"app": "server"}, ("10.0.0.1", "fd00::1"), (("web", "tcp", 80),), True)
CLIENT = PodFacts(("one", "client"), {"app": "client"}, ("10.0.0.2",), is_local=True)
ENDS = [End("10.0.0.2", CLIENT), End("10.0.0.1", SERVER)]


def policy(name: str, spec: Any) -> NetworkPolicy:
    return from_data({"metadata": {"namespace": "one", "name": name}, "spec": spec}, NetworkPolicy)


def test_why_a_connection_is_refused() -> None:
    rules = [
        {"from": [{"podSelector": {"matchLabels": {"app": "other"}}}]},
        {"from": [{"podSelector": {}}], "ports": [{"port": 81}]},
    ]
    given = [policy("deny", {"podSelector": {}}), policy("some", {"podSelector": {}, "ingress": rules})]
    asked = Asked(ENDS[0], ENDS[1], "tcp", 80)
    assert explain(asked, given, NAMESPACES) == [
        "one/client to port 80/TCP of one/server is refused: its packets are dropped",
        "  egress of one/client is not limited: no policy selects it",
        "  ingress of one/server is refused",
        "    deny has no rules: it lets nothing through",
        "    some, rule 1: one/client is not among its peers",
        "    some, rule 2: port 80/TCP is not among its ports",
    ]
    given.append(policy("web", {"podSelector": {}, "ingress": [{"ports": [{"port": "web"}]}]}))
    lines = explain(asked, given, NAMESPACES)
    assert lines[0].endswith("is let through")
    assert "  ingress of one/server is let through by web" in lines
    outside = Asked(End("192.0.2.1"), ENDS[1], "tcp", 80)
    assert "  egress of 192.0.2.1 is not limited: it is no pod's address" in explain(outside, [], {})
    assert "not limited" in explain(outside, given, NAMESPACES, ["192.0.2.1"])[0]
    assert "reaches itself" in explain(Asked(ENDS[1], ENDS[1], "tcp", 80), given, NAMESPACES)[0]


def test_who_is_meant() -> None:
    pods = [SERVER, CLIENT, PodFacts(("one", "host"), {}, ())]
    assert end_of("server", "one", pods) == end_of("one/server", "x", pods) == ENDS[1]
    assert end_of("server", "one", pods, 6).address == "fd00::1"
    assert end_of("10.0.0.2", "x", pods) == ENDS[0]
    assert end_of("192.0.2.1", "x", pods) == End("192.0.2.1")
    for name, why in (("nobody", "there is no pod one/nobody"), ("host", "has no address of its own")):
        with pytest.raises(ValueError, match=why):
            end_of(name, "one", pods)


@given(SPEC, SPEC)
def test_it_is_what_the_specification_says(first: Any, second: Any) -> None:
    """Of any policies, in both directions and for each port."""
    labels = {"a": "x"}
    pods = [
        OraclePod("one", "p", "10.0.0.1", labels, (("web", "tcp", 80),)),
        OraclePod("two", "q", "10.0.0.2", {}),
    ]
    namespaces: dict[str, Any] = {"one": {"a": "x"}, "two": {}}
    bodies = {("one", name): {"spec": spec} for name, spec in (("first", first), ("second", second))}
    world = World(namespaces, {(pod.namespace, pod.name): pod for pod in pods}, bodies)
    ends = [
        End(pod.address, PodFacts((pod.namespace, pod.name), pod.labels, (pod.address,), pod.ports, True))
        for pod in pods
    ]
    policies = [policy(name, body["spec"]) for (_, name), body in bodies.items()]
    for source, destination in (ends, ends[::-1]):
        for protocol, port in PORTS:
            lines = explain(Asked(source, destination, protocol, port), policies, namespaces)
            allowed = world.allows(source.address, destination.address, protocol, port)
            assert lines[0].endswith("is let through") is allowed


def test_what_was_dropped_is_counted() -> None:
    listing = "table ip t {\n\tcounter dropped-ingress {\n\t\tpackets 7 bytes 420\n\t}\n}\n"
    assert dropped(listing) == {"ingress": 7}
    counted = CountedPolicies(["IPv4"])
    counted.dropped["IPv4"] = dropped(listing)
    found = {sample.name: sample.value for one in policy_metrics(counted, 2, 1) for sample in one.samples}
    assert found["podling_network_policy_dropped_packets_total"] == 7
    assert found["podling_network_policy_policies"] == 2
    assert found["podling_network_policy_waiting_pods"] == 1
