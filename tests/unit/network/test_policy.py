"""R-SYS-2: what the kernel holds for network policies decides as their specification does, after any sequence
of changes, and is what would be computed afresh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podling.model.codec import json
from podling.model.types.networking import NetworkPolicy
from podling.network.policy import INGRESS, PodFacts, PolicyPlan, Ranges, compiled
from podling.network.policy_table import replacement, script
from podling.network.table import IPV4, Shape
from policy_oracle import OraclePod, World

SHAPE = Shape(IPV4, "test")
OUTSIDE = ("192.0.2.1", "198.51.100.7")
PORTS = (("tcp", 80), ("tcp", 81), ("udp", 80), ("sctp", 9000))


class Kernel:
    """Sets, maps and chains as scripts leave them, and what they decide. What nftables would refuse fails."""

    def __init__(self) -> None:
        self.elements: dict[str, dict[str, str]] = {name: {} for name in ("egress", "ingress", "selves")}
        self.chains: dict[str, list[str]] = {}

    def run(self, text: str) -> None:
        for line in text.splitlines():
            verb, what, _, _, name, *rest = line.split(" ", 5)
            given = rest[0] if rest else ""
            match verb, what:
                case "add", "set":
                    assert name not in self.elements
                    self.elements[name] = {}
                case "add", "chain":
                    self.chains.setdefault(name, [])
                case "flush", "chain":
                    self.chains[name] = []
                case "add", "rule":
                    assert all(each in self.elements for each in re.findall(r"@(\S+)", given))
                    self.chains[name].append(given)
                case "delete", "chain":
                    assert f"jump {name}" not in {*self.elements["egress"].values()}
                    assert f"jump {name}" not in {*self.elements["ingress"].values()}
                    assert not self.chains.pop(name)
                case "delete", "set":
                    rules = " ".join(rule for rules in self.chains.values() for rule in rules)
                    assert f"@{name} " not in f"{rules} "
                    del self.elements[name]
                case "delete", "element":
                    for key, value in _elements(given):
                        assert self.elements[name].pop(key) == value
                case "add", "element":
                    for key, value in _elements(given):
                        assert key not in self.elements[name]
                        assert not value or value.removeprefix("jump ") in self.chains
                        self.elements[name][key] = value
                case _:
                    raise AssertionError(line)

    def allows(self, source: str, destination: str, protocol: str, port: int) -> bool:
        if f"{source} . {destination}" in self.elements["selves"]:
            return True
        verdicts = (self.elements["egress"].get(source), self.elements["ingress"].get(destination))
        return all(
            self._passes(verdict.removeprefix("jump "), source, destination, protocol, port)
            for verdict in verdicts
            if verdict
        )

    def _passes(self, chain: str, source: str, destination: str, protocol: str, port: int) -> bool:
        asked = {
            "ct original ip saddr": source,
            "ct reply ip saddr": destination,
            "ct original protocol": protocol,
            "ct reply proto-src": f"{port}",
            "ct direction": "original",
            "ip daddr . meta l4proto . th dport": f"{destination} . {protocol} . {port}",
            "ip saddr . meta l4proto . th sport": "",
        }
        for rule in self.chains[chain]:
            if rule.endswith(" drop"):
                return False
            left, holds = rule, True
            while left != "return":
                what = next(one for one in asked if left.startswith(one))
                wanted = re.match(r" (\{.*?\}|\S+) ", left[len(what) :])
                assert wanted, rule
                left = left[len(what) + len(wanted[0]) :]
                holds = holds and self._is_in(asked[what], wanted[1])
            if holds:
                return True
        raise AssertionError(chain)

    def _is_in(self, value: str, wanted: str) -> bool:
        if wanted.startswith("@"):
            return value in self.elements[wanted[1:]]
        listed = wanted.strip("{ }").split(", ")
        if "." in value:
            ends = (one.partition("-") for one in listed)
            number = int(ip_address(value))
            return any(
                int(ip_address(first)) <= number <= int(ip_address(last or first)) for first, _, last in ends
            )
        if not value.isdigit():
            return value in listed
        ranges = (one.partition("-") for one in listed)
        return any(int(low) <= int(value) <= int(high or low) for low, _, high in ranges)


def _elements(text: str) -> Iterator[tuple[str, str]]:
    for one in text.strip("{} ").split(", "):
        key, _, value = one.partition(" : ")
        yield key, value


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
EXPRESSION = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from("ab"),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from("xy"), min_size=1, max_size=2, unique=True),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from("ab"), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
    ),
)
SELECTOR = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSION, max_size=2)}
)
BLOCK = st.sampled_from(
    (
        {"cidr": "0.0.0.0/0"},
        {"cidr": "10.0.0.0/24", "except": ["10.0.0.2/32", "10.0.0.4/31"]},
        {"cidr": "192.0.2.0/24"},
        {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/24", "10.0.0.0/25"]},
        {"cidr": "fd00::/8"},
    )
)
PEER = st.one_of(
    st.fixed_dictionaries({"podSelector": SELECTOR}),
    st.fixed_dictionaries({"namespaceSelector": SELECTOR}),
    st.fixed_dictionaries({"podSelector": SELECTOR, "namespaceSelector": SELECTOR}),
    st.fixed_dictionaries({"ipBlock": BLOCK}),
)
PORT = st.sampled_from(
    (
        {"port": 80},
        {"port": 80, "endPort": 81},
        {"protocol": "UDP"},
        {"protocol": "SCTP", "port": 9000},
        {"port": "web"},
        {"protocol": "UDP", "port": "web"},
        {"port": 1, "endPort": 65535},
    )
)
NAMESPACES = st.sampled_from(("one", "two"))


def rules(peers: str) -> st.SearchStrategy[Any]:
    optional = {peers: st.lists(PEER, max_size=3), "ports": st.lists(PORT, max_size=2)}
    return st.lists(st.fixed_dictionaries({}, optional=optional), max_size=2)


SPEC = st.fixed_dictionaries(
    {"podSelector": SELECTOR},
    optional={
        "ingress": rules("from"),
        "egress": rules("to"),
        "policyTypes": st.lists(st.sampled_from(("Ingress", "Egress")), max_size=2, unique=True),
    },
)
POD = st.builds(
    lambda number, namespace, labels, ports, is_local: OraclePod(
        namespace, f"pod-{number}", f"10.0.0.{number}", labels, ports, is_local
    ),
    st.integers(1, 5),
    NAMESPACES,
    LABELS,
    st.sampled_from(((), (("web", "tcp", 80),), (("web", "tcp", 81), ("web", "udp", 80)))),
    st.booleans(),
)
CHANGE = st.one_of(
    st.tuples(st.just("namespace"), NAMESPACES, st.none() | LABELS),
    st.tuples(st.just("pod"), POD, st.booleans()),
    st.tuples(st.just("policy"), st.tuples(NAMESPACES, st.sampled_from("pqr")), st.none() | SPEC),
    st.tuples(st.just("write"), st.none(), st.none()),
)


def facts(pod: OraclePod) -> PodFacts:
    key = pod.namespace, pod.name
    return PodFacts(key, pod.labels, (pod.address,), pod.ports, pod.is_local)


def policy(key: tuple[str, str], spec: Any) -> NetworkPolicy:
    body = {"metadata": {"namespace": key[0], "name": key[1]}, "spec": spec}
    return json.decode(msgspec.json.encode(body), NetworkPolicy)


def put(plan: PolicyPlan, world: World, what: str, which: Any, value: Any) -> None:
    match what:
        case "namespace":
            plan.put_namespace(which, value)
            world.namespaces.pop(which, None)
            if value is not None:
                world.namespaces[which] = value
        case "pod":
            # The other namespace's pod of this number would have the same address.
            for namespace in ("one", "two"):
                plan.put_pod((namespace, which.name), None)
                world.pods.pop((namespace, which.name), None)
            if value:
                plan.put_pod((which.namespace, which.name), facts(which))
                world.pods[which.namespace, which.name] = which
        case "policy":
            plan.put_policy(which, None if value is None else policy(which, value))
            world.policies.pop(which, None)
            if value is not None:
                world.policies[which] = {"spec": value}


def fresh(world: World) -> Kernel:
    plan, kernel = PolicyPlan(4), Kernel()
    for name, labels in world.namespaces.items():
        plan.put_namespace(name, labels)
    for key, pod in world.pods.items():
        plan.put_pod(key, facts(pod))
    for key, one in world.policies.items():
        plan.put_policy(key, policy(key, one["spec"]))
    kernel.run(script(plan.change(), SHAPE))
    return kernel


@settings(deadline=None)
@given(st.lists(CHANGE, max_size=40))
def test_decides_as_the_specification_after_any_changes(changes: list[tuple[str, Any, Any]]) -> None:
    plan, kernel, world = PolicyPlan(4), Kernel(), World({}, {}, {})
    for what, which, value in changes:
        put(plan, world, what, which, value)
        if what == "write":
            kernel.run(script(plan.change(), SHAPE))
    kernel.run(script(plan.change(), SHAPE))
    again = fresh(world)
    assert kernel.elements == again.elements
    assert kernel.chains == again.chains
    whole = Kernel()
    whole.run(script(plan.whole(), SHAPE))
    assert (whole.elements, whole.chains) == (kernel.elements, kernel.chains)
    assert not script(plan.change(), SHAPE)
    everywhere = [*(pod.address for pod in world.pods.values()), *OUTSIDE]
    for source in everywhere:
        for destination in everywhere:
            for protocol, port in PORTS:
                told = kernel.allows(source, destination, protocol, port)
                assert told == world.allows(source, destination, protocol, port), (source, destination)


def test_an_address_is_of_the_pod_that_got_it_last() -> None:
    """One that has ended, and whose status still tells it, is no client any more."""
    plan, kernel = PolicyPlan(4), Kernel()
    plan.put_namespace("one", {})
    server = PodFacts(("one", "server"), {"app": "server"}, ("10.0.0.1",), is_local=True)
    old = PodFacts(("one", "old"), {"app": "client"}, ("10.0.0.2",), rank=(1, ""))
    new = PodFacts(("one", "new"), {"app": "other"}, ("10.0.0.2",), rank=(2, ""))
    peer = {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}
    spec = {"podSelector": {"matchLabels": {"app": "server"}}, "ingress": [peer]}
    plan.put_policy(("one", "p"), policy(("one", "p"), spec))
    for facts_of in (server, old):
        plan.put_pod(facts_of.key, facts_of)
    kernel.run(script(plan.change(), SHAPE))
    assert kernel.allows("10.0.0.2", "10.0.0.1", "tcp", 80)
    plan.put_pod(new.key, new)
    kernel.run(script(plan.change(), SHAPE))
    assert not kernel.allows("10.0.0.2", "10.0.0.1", "tcp", 80)


@pytest.mark.parametrize("pods", [100, 1000])
def test_a_change_is_as_small_as_what_changed(pods: int) -> None:
    """Whatever the number of pods and policies."""
    plan = PolicyPlan(4)
    plan.put_namespace("one", {})
    for number in range(pods):
        app = f"app-{number}"
        spec = {
            "podSelector": {"matchLabels": {"app": app}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": f"app-{(number + 1) % pods}"}}}]}],
        }
        plan.put_policy(("one", app), policy(("one", app), spec))
        key = "one", f"pod-{number}"
        plan.put_pod(
            key,
            PodFacts(key, {"app": app}, (f"10.0.{number // 250}.{number % 250 + 1}",), is_local=True),
        )
    plan.change()
    key = "one", "new"
    plan.put_pod(key, PodFacts(key, {"app": "app-7"}, ("10.1.0.1",), is_local=True))
    told = script(plan.change(), SHAPE)
    assert len(told.splitlines()) == 3
    assert "10.0." not in told
    spec = {"podSelector": {"matchLabels": {"app": "app-7"}}, "ingress": []}
    plan.put_policy(("one", "app-7"), policy(("one", "app-7"), spec))
    assert len(script(plan.change(), SHAPE).splitlines()) <= 5


def test_the_table_before_any_policy_lets_all_through() -> None:
    assert not re.search(r"\bdrop\b(?!-)", replacement(SHAPE))


def test_a_subnet_that_is_not_understood_lets_nobody_through() -> None:
    plan, kernel = PolicyPlan(4), Kernel()
    server = PodFacts(("one", "server"), {}, ("10.0.0.1",), is_local=True)
    plan.put_pod(server.key, server)
    blocks = [{"cidr": "0.0.0.0/0", "except": ["010.0.0.0/8"]}, {"cidr": "192.000.2.0/24"}]
    spec = {"podSelector": {}, "ingress": [{"from": [{"ipBlock": block} for block in blocks]}]}
    plan.put_policy(("one", "p"), policy(("one", "p"), spec))
    kernel.run(script(plan.change(), SHAPE))
    assert not kernel.allows(OUTSIDE[0], "10.0.0.1", "tcp", 80)


def test_a_block_with_many_exceptions_is_as_many_ranges() -> None:
    """What a tenant may write costs the kernel what it is long: as subnets it would be sixteen times that."""
    excepted = [f"10.{number // 250}.{number % 250}.7/32" for number in range(40_000)]
    block = {"cidr": "10.0.0.0/8", "except": excepted}
    spec = {"podSelector": {}, "ingress": [{"from": [{"ipBlock": block}]}]}
    (rule,) = compiled(policy(("one", "p"), spec), 4).rules[INGRESS]
    assert isinstance(rule.peer, Ranges)
    assert len(rule.peer.ranges) == len(excepted) + 1
    assert sum(last - first + 1 for first, last in rule.peer.ranges) == 2**24 - len(excepted)
