"""Whether network policies let one pod or address reach another, and by which policy or why not: pure, in
lines for people.

What is shown is read from the same rules as the kernel's table (`policy.compiled`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from podling.model.types.networking import NetworkPolicy
from podling.network.policy import (
    EGRESS,
    INGRESS,
    Labels,
    Named,
    Numbers,
    PodFacts,
    Ranges,
    Rule,
    Selecting,
    compiled,
    rules_of,
)


class End(msgspec.Struct, frozen=True):
    """Of a connection: an address, and the pod that has it, if any."""

    address: str
    pod: PodFacts | None = None

    def __str__(self) -> str:
        return "/".join(self.pod.key) if self.pod else self.address


class Asked(msgspec.Struct, frozen=True):
    """A connection. `protocol` is in small letters."""

    source: End
    destination: End
    protocol: str
    port: int


def explain(
    asked: Asked,
    policies: Iterable[NetworkPolicy],
    namespaces: Mapping[str, Labels],
    own: Sequence[str] = (),
) -> list[str]:
    """`own` are the addresses of the pods' node, which reaches them, and they it, whatever policies say."""
    source, destination = asked.source, asked.destination
    title = f"{source} to port {asked.port}/{asked.protocol.upper()} of {destination}"
    if source.address == destination.address:
        return [f"{title} is let through: a pod reaches itself"]
    if {source.address, destination.address} & set(own):
        return [f"{title} is let through: a pod's own node is not limited"]
    given, lines, is_refused = list(policies), list[str](), False
    for direction, subject in ((EGRESS, source), (INGRESS, destination)):
        found = [one for one in given if limits(one, direction, subject, namespaces)]
        if not found:
            why = "no policy selects it" if subject.pod else "it is no pod's address"
            lines.append(f"  {direction} of {subject} is not limited: {why}")
            continue
        of_policies = [(one, [*_verdicts(asked, one, direction, namespaces)]) for one in found]
        by = [f"{one.metadata.name}" for one, verdicts in of_policies if "" in verdicts]
        is_refused |= not by
        said = f"let through by {', '.join(by)}" if by else "refused"
        lines.append(f"  {direction} of {subject} is {said}")
        for one, verdicts in of_policies:
            if "" in verdicts:
                continue
            if not verdicts:
                lines.append(f"    {one.metadata.name} has no rules: it lets nothing through")
            lines += [
                f"    {one.metadata.name}, rule {number}: {why}" for number, why in enumerate(verdicts, 1)
            ]
    return [f"{title} is {'refused: its packets are dropped' if is_refused else 'let through'}", *lines]


def limits(policy: NetworkPolicy, direction: str, subject: End, namespaces: Mapping[str, Labels]) -> bool:
    if subject.pod is None:
        return False
    one = compiled(policy, 4)
    namespace = subject.pod.key[0]
    selects = one.subjects.matches(namespace, namespaces.get(namespace), subject.pod.labels)
    return direction in one.rules and selects


def _verdicts(
    asked: Asked, policy: NetworkPolicy, direction: str, namespaces: Mapping[str, Labels]
) -> Iterator[str]:
    """Of each rule, why it does not let the connection through; empty if it does."""
    peer = asked.destination if direction == EGRESS else asked.source
    version = ipaddress.ip_address(peer.address).version
    for alternatives in rules_of(policy, direction, version):
        peers = [one for one in alternatives if is_peer(one.peer, peer, namespaces)]
        if not peers:
            yield f"{peer} is not among its peers"
        elif not any(is_port(one, asked) for one in peers):
            yield f"port {asked.port}/{asked.protocol.upper()} is not among its ports"
        else:
            yield ""


def is_peer(wanted: Selecting | Ranges | None, peer: End, namespaces: Mapping[str, Labels]) -> bool:
    match wanted:
        case None:
            return True
        case Ranges(ranges):
            number = int(ipaddress.ip_address(peer.address))
            return any(first <= number <= last for first, last in ranges)
        case selecting:
            pod = peer.pod
            return pod is not None and selecting.matches(pod.key[0], namespaces.get(pod.key[0]), pod.labels)


def is_port(rule: Rule, asked: Asked) -> bool:
    match rule.ports:
        case None:
            return True
        case Numbers(protocol, ranges):
            within = any(first <= asked.port <= last for first, last in ranges)
            return protocol == asked.protocol and within
        case Named(protocol, name):
            pod = asked.destination.pod
            return (
                pod is not None and (name, protocol, asked.port) in pod.ports and protocol == asked.protocol
            )


def chains_of(asked: Asked) -> Iterator[tuple[str, str]]:
    """The maps of the table, each with the address in it, that lead to what judges the connection."""
    for direction, end in ((EGRESS, asked.source), (INGRESS, asked.destination)):
        if end.pod is not None and end.pod.is_local:
            yield direction, end.address


def end_of(text: str, namespace: str, pods: Sequence[PodFacts], version: int = 0) -> End:
    """Of `ADDRESS`, `POD` or `NAMESPACE/POD`; of a pod, the address of an IP version, or its first. Raises
    ValueError."""
    try:
        address = str(ipaddress.ip_address(text))
    except ValueError:
        pass
    else:
        return End(address, next((pod for pod in pods if address in pod.addresses), None))
    of, _, name = text.rpartition("/")
    key = of or namespace, name
    pod = next((pod for pod in pods if pod.key == key), None)
    if pod is None:
        raise ValueError(f"there is no pod {'/'.join(key)}")
    of_version = [one for one in pod.addresses if version in (0, ipaddress.ip_address(one).version)]
    if not of_version:
        raise ValueError(f"pod {'/'.join(key)} has no address of its own: no policy is about it")
    return End(of_version[0], pod)
