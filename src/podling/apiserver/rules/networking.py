"""Validation of the kinds of networking.k8s.io/v1 (`pkg/apis/networking/validation` of Kubernetes)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from ipaddress import IPv4Network, IPv6Network

from podling.apiserver.rules.addresses import (
    parsed_cidr_loosely,
    parsed_loosely,
    validate_cidr,
    validate_ip,
)
from podling.apiserver.rules.field import (
    all_invalid,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from podling.apiserver.rules.metadata import validate_label_selector
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.networking import (
    HTTPIngressPath,
    Ingress,
    IngressBackend,
    IngressClassParametersReference,
    IngressClassSpec,
    IngressSpec,
    IPBlock,
    NetworkPolicyPeer,
    NetworkPolicyPort,
    NetworkPolicySpec,
)

NO_ADDRESS = "must be a DNS name, not an IP address"
CLUSTER, NAMESPACE = "Cluster", "Namespace"
PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICY_TYPES = ("Ingress", "Egress")
LONGEST_CONTROLLER = 250
EXACT, PREFIX, OWN_MATCHING = "Exact", "Prefix", "ImplementationSpecific"
PATH_TYPES = frozenset({EXACT, PREFIX, OWN_MATCHING})
FORBIDDEN_IN_PATH = ("//", "/./", "/../", "%2f", "%2F")
FORBIDDEN_AT_END = ("/..", "/.")
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_PATTERN = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PATH = re.compile(_PATH_PATTERN)


def validate_ingress_class_spec(spec: IngressClassSpec, path: str) -> Iterator[Cause]:
    where = f"{path}.controller"
    if len(spec.controller.encode()) > LONGEST_CONTROLLER:
        yield too_long(where, LONGEST_CONTROLLER)
    yield from validate_domain_path(spec.controller, where)
    if spec.parameters is not None:
        yield from _validate_parameters(spec.parameters, f"{path}.parameters")


def validate_domain_path(value: str, path: str) -> Iterator[Cause]:
    """`example.com/path`."""
    domain, slash, rest = value.partition("/")
    if not value:
        yield required(path)
    elif not slash or not domain or not rest:
        yield invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from all_invalid(path, domain, names.dns1123_subdomain(domain))
        if not _PATH.fullmatch(rest):
            yield invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH_PATTERN}')")


def _validate_parameters(parameters: IngressClassParametersReference, path: str) -> Iterator[Cause]:
    yield from validate_reference(parameters.api_group, parameters.kind, parameters.name, path)
    scope, namespace = parameters.scope, parameters.namespace
    if scope not in (CLUSTER, NAMESPACE):
        yield not_supported(f"{path}.scope", scope, (CLUSTER, NAMESPACE))
    if scope == NAMESPACE and namespace is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    if scope == NAMESPACE and namespace is not None:
        yield from all_invalid(f"{path}.namespace", namespace, names.dns1123_label(namespace))
    if scope == CLUSTER and namespace is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def validate_reference(group: str | None, kind: str, name: str, path: str) -> Iterator[Cause]:
    if group is not None:
        yield from all_invalid(f"{path}.apiGroup", group, names.dns1123_subdomain(group))
    for wire, value in (("kind", kind), ("name", name)):
        if value:
            yield from all_invalid(f"{path}.{wire}", value, names.path_segment(value))
        else:
            yield required(f"{path}.{wire}")


def validate_ingress_spec(spec: IngressSpec, path: str) -> Iterator[Cause]:
    if not spec.rules and spec.default_backend is None:
        yield invalid(path, spec.rules or None, "either `defaultBackend` or `rules` must be specified")
    if spec.default_backend is not None:
        yield from _validate_backend(spec.default_backend, f"{path}.defaultBackend")
    for i, rule in enumerate(spec.rules):
        if rule.host:
            yield from _validate_host(rule.host, f"{path}.rules[{i}].host")
        if rule.http is not None:
            yield from _validate_paths(rule.http.paths, f"{path}.rules[{i}].http.paths")
    for i, tls in enumerate(spec.tls):
        for j, host in enumerate(tls.hosts):
            where = f"{path}.tls[{i}].hosts[{j}]"
            yield from all_invalid(where, host, _host_faults(host))
        if tls.secret_name:
            faults = names.dns1123_subdomain(tls.secret_name)
            yield from all_invalid(f"{path}.tls[{i}].secretName", tls.secret_name, faults)
    if spec.ingress_class_name is not None:
        faults = names.dns1123_subdomain(spec.ingress_class_name)
        yield from all_invalid(f"{path}.ingressClassName", spec.ingress_class_name, faults)


def validate_new_ingress(ingress: Ingress) -> Iterator[Cause]:
    """The annotation of old and the field may not name two classes."""
    annotated, named = ingress.metadata.annotations.get(CLASS_ANNOTATION), ingress.spec.ingress_class_name
    if annotated is not None and named is not None and annotated != named:
        why = "must match `ingressClassName` when both are specified"
        yield invalid(f"annotations.{CLASS_ANNOTATION}", annotated, why)


def validate_ingress_status(new: Ingress, old: Ingress) -> Iterator[Cause]:
    standing = {ingress.ip for ingress in old.status.load_balancer.ingress}
    for i, ingress in enumerate(new.status.load_balancer.ingress):
        where = f"status.loadBalancer.ingress[{i}]"
        if ingress.ip:
            yield from validate_ip(ingress.ip, f"{where}.ip", standing)
        if ingress.hostname:
            faults = names.dns1123_subdomain(ingress.hostname)
            yield from all_invalid(f"{where}.hostname", ingress.hostname, faults)
            if parsed_loosely(ingress.hostname) is not None:
                yield invalid(f"{where}.hostname", ingress.hostname, NO_ADDRESS)


def _validate_host(host: str, path: str) -> Iterator[Cause]:
    if parsed_loosely(host) is not None:
        yield invalid(path, host, NO_ADDRESS)
    yield from all_invalid(path, host, _host_faults(host))


def _host_faults(host: str) -> list[str]:
    return names.wildcard_subdomain(host) if "*" in host else names.dns1123_subdomain(host)


def _validate_paths(paths: Sequence[HTTPIngressPath], path: str) -> Iterator[Cause]:
    if not paths:
        yield required(path)
    for i, one in enumerate(paths):
        where = f"{path}[{i}]"
        if one.path_type is None:
            yield required(f"{where}.pathType", "pathType must be specified")
            continue
        if one.path_type not in PATH_TYPES:
            yield not_supported(f"{where}.pathType", one.path_type, PATH_TYPES)
        else:
            yield from _validate_path(one.path, one.path_type, f"{where}.path")
        yield from _validate_backend(one.backend, f"{where}.backend")


def _validate_path(path: str, path_type: str, where: str) -> Iterator[Cause]:
    may_be_empty = path_type == OWN_MATCHING
    if not path.startswith("/") and not (may_be_empty and not path):
        yield invalid(where, path, "must be an absolute path")
    if path_type != OWN_MATCHING:
        for part in FORBIDDEN_IN_PATH:
            if part in path:
                yield invalid(where, path, f"must not contain '{part}'")
        for end in FORBIDDEN_AT_END:
            if path.endswith(end):
                yield invalid(where, path, f"cannot end with '{end}'")


def _validate_backend(backend: IngressBackend, path: str) -> Iterator[Cause]:
    service, resource = backend.service, backend.resource
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from validate_reference(resource.api_group, resource.kind, resource.name, f"{path}.resource")
    elif service is not None:
        where = f"{path}.service"
        if not service.name:
            yield required(f"{where}.name")
        else:
            yield from all_invalid(f"{where}.name", service.name, names.dns1123_label(service.name))
        port = service.port
        if port.name and port.number:
            yield invalid(path, "", "cannot set both port name & port number")
        elif port.name:
            yield from all_invalid(f"{where}.port.name", port.name, names.port_name(port.name))
        elif port.number:
            yield from all_invalid(f"{where}.port.number", port.number, names.port_number(port.number))
        else:
            yield required(path, "port name or number is required")
    else:
        yield invalid(path, "", "resource or service backend is required")


def validate_network_policy_spec(
    spec: NetworkPolicySpec, path: str, standing: AbstractSet[str] = frozenset()
) -> Iterator[Cause]:
    """`standing`: the subnets that the object had before, none of which is validated again."""
    yield from validate_label_selector(spec.pod_selector, f"{path}.podSelector")
    for rule_path, ports, peers_path, peers in _rules(spec, path):
        for i, port in enumerate(ports):
            yield from _validate_port(port, f"{rule_path}.ports[{i}]")
        for i, peer in enumerate(peers):
            yield from _validate_peer(peer, f"{peers_path}[{i}]", standing)
    if len(spec.policy_types) > len(POLICY_TYPES):
        why = "may not specify more than two policyTypes"
        yield invalid(f"{path}.policyTypes", spec.policy_types, why)
        return
    for i, policy_type in enumerate(spec.policy_types):
        if policy_type not in POLICY_TYPES:
            yield not_supported(f"{path}.policyTypes[{i}]", policy_type, POLICY_TYPES)


def _rules(
    spec: NetworkPolicySpec, path: str
) -> Iterator[tuple[str, Sequence[NetworkPolicyPort], str, Sequence[NetworkPolicyPeer]]]:
    """The path of each rule and its ports, the path of its peers and these."""
    for i, ingress in enumerate(spec.ingress):
        yield f"{path}.ingress[{i}]", ingress.ports, f"{path}.ingress[{i}].from", ingress.from_
    for i, egress in enumerate(spec.egress):
        yield f"{path}.egress[{i}]", egress.ports, f"{path}.egress[{i}].to", egress.to


def blocks_of(spec: NetworkPolicySpec, path: str) -> Iterator[tuple[str, IPBlock]]:
    """Each block of addresses with its path."""
    for _, _, where, peers in _rules(spec, path):
        for i, peer in enumerate(peers):
            if peer.ip_block is not None:
                yield f"{where}[{i}].ipBlock", peer.ip_block


def _validate_port(port: NetworkPolicyPort, path: str) -> Iterator[Cause]:
    if port.protocol is not None and port.protocol not in PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.protocol, PROTOCOLS)
    end = port.end_port
    if isinstance(port.port, int):
        yield from all_invalid(f"{path}.port", port.port, names.port_number(port.port))
        if end is not None:
            if end < port.port:
                yield invalid(f"{path}.endPort", port.port, "must be greater than or equal to `port`")
            yield from all_invalid(f"{path}.endPort", end, names.port_number(end))
        return
    if end is not None:
        what = "not specified" if port.port is None else "non-numeric"
        yield invalid(f"{path}.endPort", end, f"may not be specified when `port` is {what}")
    if port.port is not None:
        yield from all_invalid(f"{path}.port", port.port, names.port_name(port.port))


def _validate_peer(peer: NetworkPolicyPeer, path: str, standing: AbstractSet[str]) -> Iterator[Cause]:
    yield from validate_label_selector(peer.pod_selector, f"{path}.podSelector")
    yield from validate_label_selector(peer.namespace_selector, f"{path}.namespaceSelector")
    selects = peer.pod_selector is not None or peer.namespace_selector is not None
    if peer.ip_block is not None:
        yield from _validate_block(peer.ip_block, f"{path}.ipBlock", standing)
        if selects:
            yield forbidden(path, "may not specify both ipBlock and another peer")
    elif not selects:
        yield required(path, "must specify a peer")


def _validate_block(block: IPBlock, path: str, standing: AbstractSet[str]) -> Iterator[Cause]:
    if not block.cidr:
        yield required(f"{path}.cidr")
        return
    yield from validate_cidr(block.cidr, f"{path}.cidr", standing)
    whole = parsed_cidr_loosely(block.cidr)
    if whole is None:
        return
    for i, excepted in enumerate(block.except_):
        where = f"{path}.except[{i}]"
        yield from validate_cidr(excepted, where, standing)
        part = parsed_cidr_loosely(excepted)
        if part is not None and not _is_within(part, whole):
            yield invalid(where, excepted, "must be a strict subset of `cidr`")


def _is_within(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    """Whether a subnet is a part, and not the whole, of another."""
    return part.prefixlen > whole.prefixlen and part.network_address in whole
