"""The kinds of networking.k8s.io/v1: Ingresses, IngressClasses and NetworkPolicies.

They are stored, and served to those who act on them: `podling network` on policies, no part of podling on
ingresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, NONE, addresses_text, age, selector_text
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import warn_of_cidr, warn_of_ips
from podling.apiserver.rules.field import IMMUTABLE, invalid
from podling.apiserver.rules.networking import (
    CLASS_ANNOTATION,
    CLUSTER,
    blocks_of,
    validate_ingress_class_spec,
    validate_ingress_spec,
    validate_ingress_status,
    validate_network_policy_spec,
    validate_new_ingress,
)
from podling.model.codec.fields import Telling, told_empty
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.networking import (
    Ingress,
    IngressClass,
    IngressRule,
    NetworkPolicy,
    NetworkPolicyEgressRule,
    NetworkPolicyIngressRule,
    NetworkPolicySpec,
)

OLD_ANNOTATION = (
    f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
)
MOST_HOSTS = 3


def _warn_of_addresses(ingress: Ingress) -> Iterator[str]:
    addresses = (one.ip for one in ingress.status.load_balancer.ingress)
    yield from warn_of_ips(addresses, "status.loadBalancer.ingress")


class Ingresses(Controlled[Ingress]):
    resource = resource_of(Ingress)
    unattended = (
        "podling has no ingress controller: nothing serves this one unless a controller of its class runs"
    )
    subresources = {"status": Status(validate_ingress_status, warn=_warn_of_addresses)}
    columns = (
        NAME,
        Column("Class", description="The IngressClass, which says who serves it."),
        Column("Hosts", description="The hosts that its rules are for."),
        Column("Address", description="Where it is served."),
        Column("Ports", description="The ports on which it is served."),
        AGE,
    )

    def validate(self, obj: Ingress) -> list[Cause]:
        return [*metadata.validate(obj.metadata), *validate_ingress_spec(obj.spec, "spec")]

    def validate_create(self, obj: Ingress) -> list[Cause]:
        return [*self.validate(obj), *validate_new_ingress(obj)]

    def create_warnings(self, obj: Ingress) -> list[str]:
        is_old = obj.spec.ingress_class_name is None and CLASS_ANNOTATION in obj.metadata.annotations
        old = [OLD_ANNOTATION] if is_old else []
        return [*old, *super().create_warnings(obj)]

    def row(self, obj: Ingress, now: datetime) -> list[Any]:
        class_name = obj.spec.ingress_class_name
        return [
            obj.metadata.name,
            NONE if class_name is None else class_name,
            _hosts(obj.spec.rules),
            addresses_text(obj.status.load_balancer.ingress),
            "80, 443" if obj.spec.tls else "80",
            age(obj.metadata.creation_timestamp, now),
        ]


def _hosts(rules: list[IngressRule]) -> str:
    """The first few hosts; what follows is counted in rules, those before without a host included."""
    named = [i for i, rule in enumerate(rules) if rule.host][:MOST_HOSTS]
    is_cut = len(named) == MOST_HOSTS and named[-1] < len(rules) - 1
    more = f" + {len(rules) - MOST_HOSTS} more..." if is_cut else ""
    return ",".join(rules[i].host for i in named) + more or "*"


class IngressClasses(Kind[IngressClass]):
    resource = resource_of(IngressClass)
    has_generation = True
    tells_changes_first = True
    columns = (
        NAME,
        Column("Controller", description="Who serves the ingresses of this class."),
        Column("Parameters", description="An object that says more to the controller."),
        AGE,
    )

    def default(self, obj: IngressClass) -> None:
        parameters = obj.spec.parameters
        if parameters is not None and parameters.scope is None:
            parameters.scope = CLUSTER

    def validate(self, obj: IngressClass) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False),
            *validate_ingress_class_spec(obj.spec, "spec"),
        ]

    def validate_update(self, new: IngressClass, old: IngressClass) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.spec.controller != old.spec.controller:
            causes.append(invalid("spec.controller", new.spec.controller, IMMUTABLE))
        return causes

    def row(self, obj: IngressClass, now: datetime) -> list[Any]:
        shown, parameters = NONE, obj.spec.parameters
        if parameters is not None:
            group = f".{parameters.api_group}" if parameters.api_group is not None else ""
            shown = f"{parameters.kind}{group}/{parameters.name}"
        return [obj.metadata.name, obj.spec.controller, shown, age(obj.metadata.creation_timestamp, now)]


def _parts(spec: NetworkPolicySpec) -> Iterator[Telling]:
    yield spec
    yield from (*spec.ingress, *spec.egress)
    peers = [
        *(peer for rule in spec.ingress for peer in rule.from_),
        *(peer for rule in spec.egress for peer in rule.to),
    ]
    yield from peers
    yield from (peer.ip_block for peer in peers if peer.ip_block is not None)


class NetworkPolicies(Kind[NetworkPolicy]):
    resource = resource_of(NetworkPolicy)
    judges_prefix_again = False
    has_generation = True
    unattended = (
        "podling has no network policies in this process: nothing enforces this one unless `podling network` "
        "or a network plugin does"
    )
    columns = (
        NAME,
        Column("Pod-Selector", description="The pods whose traffic it limits."),
        AGE,
    )

    def __init__(self, *, are_enforced: bool) -> None:
        self._are_enforced = are_enforced

    def create_warnings(self, obj: NetworkPolicy) -> list[str]:
        return self.warnings(obj) if self._are_enforced else super().create_warnings(obj)

    def default(self, obj: NetworkPolicy) -> None:
        spec = obj.spec
        rules: list[NetworkPolicyIngressRule | NetworkPolicyEgressRule] = [*spec.ingress, *spec.egress]
        for rule in rules:
            for port in rule.ports:
                port.protocol = "TCP" if port.protocol is None else port.protocol
        if not spec.policy_types:
            spec.policy_types = ["Ingress", "Egress"] if spec.egress else ["Ingress"]

    def counts(self, obj: NetworkPolicy) -> bool:
        # A list that is empty is another than one that is left out.
        return any(map(told_empty, _parts(obj.spec)))

    def validate(self, obj: NetworkPolicy) -> list[Cause]:
        return [*metadata.validate(obj.metadata), *validate_network_policy_spec(obj.spec, "spec")]

    def validate_changed(self, new: NetworkPolicy, old: NetworkPolicy) -> list[Cause]:
        standing = {cidr for _, block in blocks_of(old.spec, "spec") for cidr in (block.cidr, *block.except_)}
        return [*metadata.validate(new.metadata), *validate_network_policy_spec(new.spec, "spec", standing)]

    def warnings(self, obj: NetworkPolicy) -> list[str]:
        return [
            said
            for path, block in blocks_of(obj.spec, "spec")
            for where, cidr in (
                (f"{path}.cidr", block.cidr),
                *((f"{path}.except[{i}]", excepted) for i, excepted in enumerate(block.except_)),
            )
            for said in warn_of_cidr(cidr, where)
        ]

    def row(self, obj: NetworkPolicy, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            selector_text(obj.spec.pod_selector),
            age(obj.metadata.creation_timestamp, now),
        ]
