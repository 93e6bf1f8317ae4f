"""Network policies: which rules and sets the kernel needs for the pods of a node. Pure.

Each pod of this node that policies select has a chain for each direction in which they do. Pods that the same
policies select share it, so there are about as many chains as workloads. Peers are sets of addresses, one for
each distinct selector, and named ports are sets of `address . protocol . port`: when a pod comes or goes,
elements change and no rule does (docs/decisions/076).
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from podling.model.rules.status import is_mirror
from podling.model.selectors import IN, Selector, from_label_selector
from podling.model.types.container import Container
from podling.model.types.networking import IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort
from podling.model.types.pod import Pod

T = TypeVar("T", bound=Hashable)
S = TypeVar("S", bound=Hashable)
Key = tuple[str, str]
"""Namespace and name."""
Labels = Mapping[str, str]
Element = tuple[str, str]
"""The name of a set or map, and the key in it."""

INGRESS, EGRESS, SELVES = "ingress", "egress", "selves"
"""The maps from a pod's address to the chain of its direction, and the set of the pairs of an address with
itself."""
PREFIXES = {INGRESS: "in", EGRESS: "out"}
ENDED = ("Succeeded", "Failed")


class PodFacts(msgspec.Struct, frozen=True):
    """What policies are about. `ports` are (name, protocol, number). Where several pods claim an address, as
    one does whose end is not known yet, it is of the one with the highest `rank`."""

    key: Key
    labels: Labels
    addresses: tuple[str, ...]
    ports: tuple[tuple[str, str, int], ...] = ()
    is_local: bool = False
    rank: tuple[int, str] = (0, "")


def pod_facts(pod: Pod, node: str, given: Sequence[str] = (), admitted: int = 0) -> PodFacts:
    """`given` are the addresses of its sandbox if the runtime has said, otherwise the status tells them;
    `admitted` counts up with each sandbox that got some. A pod in its node's network, or one that has ended,
    has none of its own."""
    status, spec = pod.status, pod.spec
    addresses = tuple(given) or tuple(one.ip for one in status.pod_ips if one.ip)
    if spec.host_network or status.phase in ENDED:
        addresses = ()
    return PodFacts(
        (pod.metadata.namespace, pod.metadata.name),
        pod.metadata.labels,
        addresses,
        tuple(
            (port.name, (port.protocol or "TCP").lower(), port.container_port)
            for container in (*_sidecars(pod), *spec.containers)
            for port in container.ports
            if port.name
        ),
        spec.node_name == node or is_mirror(pod),
        (admitted, f"{pod.metadata.creation_timestamp or ''}"),
    )


def _sidecars(pod: Pod) -> Iterator[Container]:
    return (one for one in pod.spec.init_containers if one.restart_policy == "Always")


class Selecting(msgspec.Struct, frozen=True):
    """Pods of a namespace, or of those that `namespaces` selects."""

    pods: Selector
    namespace: str = ""
    namespaces: Selector | None = None

    def matches(self, namespace: str, of_namespace: Labels | None, labels: Labels) -> bool:
        """`of_namespace` are the namespace's labels, None if it is not known."""
        if self.namespaces is None:
            return namespace == self.namespace and self.pods.matches(labels)
        return (
            of_namespace is not None and self.namespaces.matches(of_namespace) and self.pods.matches(labels)
        )


class Ranges(msgspec.Struct, frozen=True):
    """Of addresses as numbers, each with its first and its last; sorted, none touches another."""

    ranges: tuple[tuple[int, int], ...]


class Numbers(msgspec.Struct, frozen=True):
    """Ranges of ports, of a protocol in small letters."""

    protocol: str
    ranges: tuple[tuple[int, int], ...]


class Named(msgspec.Struct, frozen=True):
    """The port that a destination's container gives this name."""

    protocol: str
    name: str


class Rule(msgspec.Struct, frozen=True):
    """What is let through: with these peers (ranges of addresses, or the pods of a set), to these ports; None
    is for all there are."""

    peer: Selecting | Ranges | None = None
    ports: Numbers | Named | None = None


class Compiled(msgspec.Struct, frozen=True):
    """A policy: its pods, and the rules of each direction that it limits."""

    subjects: Selecting
    rules: Mapping[str, tuple[Rule, ...]]


def compiled(policy: NetworkPolicy, version: int) -> Compiled:
    """For the addresses of an IP version. Raises ValueError for what validation refuses."""
    namespace, spec = policy.metadata.namespace, policy.spec
    types = spec.policy_types or (["Ingress", "Egress"] if spec.egress else ["Ingress"])
    rules = {
        direction: tuple(
            dict.fromkeys(rule for some in rules_of(policy, direction, version) for rule in some)
        )
        for direction in PREFIXES
        if direction.capitalize() in types
    }
    return Compiled(Selecting(from_label_selector(spec.pod_selector), namespace), rules)


def rules_of(policy: NetworkPolicy, direction: str, version: int) -> Iterator[tuple[Rule, ...]]:
    """What each rule of a policy lets through in a direction. Raises ValueError for what validation
    refuses."""
    namespace, spec = policy.metadata.namespace, policy.spec
    if direction == INGRESS:
        given = [(one.from_, one.ports) for one in spec.ingress]
    else:
        given = [(one.to, one.ports) for one in spec.egress]
    for peers, ports in given:
        yield tuple(Rule(peer, port) for peer in _peers(peers, namespace, version) for port in _ports(ports))


def _peers(
    peers: Sequence[NetworkPolicyPeer], namespace: str, version: int
) -> Iterator[Selecting | Ranges | None]:
    if not peers:
        yield None
    blocks: list[tuple[int, int]] = []
    for peer in peers:
        if peer.ip_block is not None:
            blocks += _ranges(peer.ip_block, version)
            continue
        pods = Selector() if peer.pod_selector is None else from_label_selector(peer.pod_selector)
        if peer.namespace_selector is None:
            yield Selecting(pods, namespace)
        else:
            yield Selecting(pods, namespaces=from_label_selector(peer.namespace_selector))
    if blocks:
        yield Ranges(tuple(_merged(blocks)))


def _ranges(block: IPBlock, version: int) -> Iterator[tuple[int, int]]:
    """What is left of a block without what it excepts: nothing of one with a subnet in a form that servers
    take from objects of before alone, such as `010.0.0.0/8`."""
    try:
        whole, *excepted = (ipaddress.ip_network(one, strict=False) for one in (block.cidr, *block.except_))
    except ValueError:
        return
    if whole.version != version:
        return
    begin, end = int(whole.network_address), int(whole.broadcast_address)
    out = sorted(
        (int(one.network_address), int(one.broadcast_address)) for one in excepted if one.version == version
    )
    # The last is behind the block: before it is what is left in the end.
    for first, last in (*out, (end + 1, end + 1)):
        if begin < first:
            yield begin, min(first - 1, end)
        begin = max(begin, last + 1)
        if begin > end:
            return


def _ports(ports: Sequence[NetworkPolicyPort]) -> Iterator[Numbers | Named | None]:
    if not ports:
        yield None
    ranges: dict[str, list[tuple[int, int]]] = {}
    for port in ports:
        protocol = (port.protocol or "TCP").lower()
        if isinstance(port.port, str):
            yield Named(protocol, port.port)
        elif port.port is None:
            ranges.setdefault(protocol, []).append((0, 65535))
        else:
            ranges.setdefault(protocol, []).append((port.port, port.end_port or port.port))
    for protocol, of_protocol in ranges.items():
        yield Numbers(protocol, tuple(_merged(of_protocol)))


def _merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    first, last = -1, -2
    for low, high in sorted(ranges):
        if low <= last + 1:
            last = max(last, high)
            continue
        if first >= 0:
            yield first, last
        first, last = low, high
    yield first, last


class _Index(Generic[T]):
    """Finds what may select a pod without looking at all there is: by a label that it must have, otherwise by
    its namespace."""

    def __init__(self) -> None:
        self._by: dict[tuple[str, ...], dict[T, Selecting]] = {}

    def add(self, what: T, selecting: Selecting) -> None:
        self._by.setdefault(_place(selecting), {})[what] = selecting

    def remove(self, what: T, selecting: Selecting) -> None:
        place = _place(selecting)
        del self._by[place][what]
        if not self._by[place]:
            del self._by[place]

    def selecting(self, pod: PodFacts, of_namespace: Labels | None) -> Iterator[T]:
        namespace, labels = pod.key[0], pod.labels
        for place in (*_places(pod), ()):
            for what, selecting in self._by.get(place, {}).items():
                if selecting.matches(namespace, of_namespace, labels):
                    yield what


def _places(pod: PodFacts) -> tuple[tuple[str, ...], ...]:
    return (*pod.labels.items(), (pod.key[0],))


def _place(selecting: Selecting) -> tuple[str, ...]:
    for one in selecting.pods.requirements:
        if one.operator == IN and len(one.values) == 1:
            return one.key, next(iter(one.values))
    return (selecting.namespace,) if selecting.namespaces is None else ()


class Change(msgspec.Struct, frozen=True):
    """What is to change in the kernel: `sets` that are new, by name, with what they hold; `chains` that are
    new or have other rules; elements; and the names of the chains and sets that are gone."""

    sets: dict[str, Selecting | Named]
    chains: dict[str, tuple[Rule, ...]]
    removed: dict[Element, str]
    added: dict[Element, str]
    gone_chains: tuple[str, ...]
    gone_sets: tuple[str, ...]


class _Chain(msgspec.Struct):
    direction: str
    policies: tuple[Key, ...]
    users: int = 0
    """How many addresses it judges."""
    rules: tuple[Rule, ...] | None = None
    """None as long as nobody has said."""
    sets: frozenset[Selecting | Named] = frozenset()


class PolicyPlan:
    """What the kernel needs for the objects that were put, of one IP version. `change` tells what has become
    other since it was asked last."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._namespaces: dict[str, Labels] = {}
        self._pods: dict[Key, PodFacts] = {}
        self._pods_at: dict[tuple[str, ...], dict[Key, None]] = {}
        """By namespace, and by each label."""
        self._claims: dict[str, dict[Key, None]] = {}
        self._policies: dict[Key, Compiled] = {}
        self._subjects = _Index[Key]()
        self._peers = _Index[str]()
        self._sets: Counter[Selecting | Named] = Counter()
        """Of how many chains."""
        self._chains: dict[str, _Chain] = {}
        self._chains_of: dict[Key, dict[str, None]] = {}
        self._held: dict[str, dict[Element, str]] = {}
        """By address."""
        self._dirty: dict[str, None] = {}
        self._dirty_chains: dict[str, None] = {}

    def put_namespace(self, name: str, labels: Labels | None) -> None:
        if self._namespaces.get(name) == labels:
            return
        if labels is None:
            del self._namespaces[name]
        else:
            self._namespaces[name] = labels
        for key in self._pods_at.get((name,), ()):
            self._note(self._pods[key])

    def put_pod(self, key: Key, facts: PodFacts | None) -> None:
        before = self._pods.pop(key, None)
        if facts is not None:
            self._pods[key] = facts
        if before == facts:
            return
        if before is not None:
            self._note(before)
            for place in _places(before):
                _discard(self._pods_at, place, key)
            for address in before.addresses:
                _discard(self._claims, address, key)
        if facts is not None:
            self._note(facts)
            for place in _places(facts):
                self._pods_at.setdefault(place, {})[key] = None
            for address in facts.addresses:
                self._claims.setdefault(address, {})[key] = None

    def put_policy(self, key: Key, policy: NetworkPolicy | None) -> None:
        """Raises ValueError for what validation refuses."""
        after = None if policy is None else compiled(policy, self._version)
        before = self._policies.pop(key, None)
        if after is not None:
            self._policies[key] = after
        if before == after:
            return
        if before is not None:
            self._subjects.remove(key, before.subjects)
        if after is not None:
            self._subjects.add(key, after.subjects)
        if before and after and _limits(before) == _limits(after):
            self._dirty_chains.update(self._chains_of.get(key, {}))
            return
        for one in (before, after):
            if one is not None:
                for facts in self._selected(one.subjects):
                    if facts.is_local:
                        self._note(facts)
        self._dirty_chains.update(self._chains_of.get(key, {}))

    def change(self) -> Change:
        dirty = self._dirty
        judging = {address: self._join_chains(address) for address in dirty}
        before = set(self._sets)
        chains, gone = self._settle_chains()
        new_sets, gone_sets = self._sets.keys() - before, before - self._sets.keys()
        for holds in (*new_sets, *gone_sets):
            for facts in self._with_elements(holds):
                self._note(facts)
        self._dirty = {}
        removed: dict[Element, str] = {}
        added: dict[Element, str] = {}
        for address in dirty:
            old = self._held.pop(address, {})
            new = judging.get(address)
            if new is None:
                new = {at: one for at, one in old.items() if at[0] in (*PREFIXES, SELVES)}
            new = {**new, **self._memberships(address)}
            if new:
                self._held[address] = new
            removed.update(item for item in old.items() if new.get(item[0]) != item[1])
            added.update(item for item in new.items() if old.get(item[0]) != item[1])
        names = {set_name(holds) for holds in gone_sets}
        return Change(
            {set_name(holds): holds for holds in new_sets},
            chains,
            {at: value for at, value in removed.items() if at[0] not in names},
            added,
            gone,
            tuple(names),
        )

    def whole(self) -> Change:
        """All there is, as it was when `change` was asked last."""
        return Change(
            {set_name(holds): holds for holds in self._sets},
            {name: one.rules or () for name, one in self._chains.items()},
            {},
            {element: value for of in self._held.values() for element, value in of.items()},
            (),
            (),
        )

    def _note(self, facts: PodFacts) -> None:
        self._dirty.update(
            dict.fromkeys(one for one in facts.addresses if (":" in one) == (self._version == 6))
        )

    def _owner(self, address: str) -> PodFacts | None:
        claims = (self._pods[key] for key in self._claims.get(address, ()))
        return max(claims, key=lambda one: (one.rank, one.key), default=None)

    def _judging(self, address: str) -> dict[Element, str]:
        """The elements that lead to the chains of an address."""
        owner = self._owner(address)
        if owner is None or not owner.is_local:
            return {}
        selecting = sorted(self._subjects.selecting(owner, self._namespaces.get(owner.key[0])))
        found: dict[Element, str] = {}
        for direction in PREFIXES:
            if keys := tuple(key for key in selecting if direction in self._policies[key].rules):
                name = found[direction, address] = f"{PREFIXES[direction]}-{_short(repr(keys))}"
                found[SELVES, f"{address} . {address}"] = ""
                if name not in self._chains:
                    self._chains[name] = _Chain(direction, keys)
                    for key in keys:
                        self._chains_of.setdefault(key, {})[name] = None
        return found

    def _join_chains(self, address: str) -> dict[Element, str]:
        held, judging = self._held.get(address, {}), self._judging(address)
        for direction in PREFIXES:
            before, after = held.get((direction, address)), judging.get((direction, address))
            if before == after:
                continue
            for chain, users in ((before, -1), (after, 1)):
                if chain:
                    self._chains[chain].users += users
                    self._dirty_chains[chain] = None
        return judging

    def _settle_chains(self) -> tuple[dict[str, tuple[Rule, ...]], tuple[str, ...]]:
        """The chains that are new or have other rules, and those that nobody has any more."""
        dirty, self._dirty_chains = self._dirty_chains, {}
        written: dict[str, tuple[Rule, ...]] = {}
        gone: list[str] = []
        for name in dirty:
            chain = self._chains[name]
            rules: tuple[Rule, ...] = ()
            if chain.users:
                of = (self._policies[key].rules[chain.direction] for key in chain.policies)
                rules = tuple(dict.fromkeys(rule for some in of for rule in some))
                if rules != chain.rules:
                    written[name] = rules
            else:
                gone.append(name)
                del self._chains[name]
                for key in chain.policies:
                    _discard(self._chains_of, key, name)
            sets = frozenset(
                one for rule in rules for one in (rule.peer, rule.ports) if isinstance(one, Selecting | Named)
            )
            for holds in sets - chain.sets:
                self._sets[holds] += 1
                if self._sets[holds] == 1 and isinstance(holds, Selecting):
                    self._peers.add(set_name(holds), holds)
            for holds in chain.sets - sets:
                self._sets[holds] -= 1
                if not self._sets[holds]:
                    del self._sets[holds]
                    if isinstance(holds, Selecting):
                        self._peers.remove(set_name(holds), holds)
            chain.rules, chain.sets = rules, sets
        return written, tuple(gone)

    def _selected(self, by: Selecting) -> Iterator[PodFacts]:
        place = _place(by)
        for key in self._pods_at.get(place, ()) if place else self._pods:
            facts = self._pods[key]
            if by.matches(key[0], self._namespaces.get(key[0]), facts.labels):
                yield facts

    def _with_elements(self, holds: Selecting | Named) -> Iterator[PodFacts]:
        """The pods that a set is about."""
        if isinstance(holds, Selecting):
            return self._selected(holds)
        port = holds.name, holds.protocol
        return (pod for pod in self._pods.values() if any(one[:2] == port for one in pod.ports))

    def _memberships(self, address: str) -> dict[Element, str]:
        owner = self._owner(address)
        if owner is None:
            return {}
        names = self._peers.selecting(owner, self._namespaces.get(owner.key[0]))
        found = {(name, address): "" for name in names}
        for port, protocol, number in owner.ports:
            if (named := Named(protocol, port)) in self._sets:
                found[set_name(named), f"{address} . {protocol} . {number}"] = ""
        return found


def set_name(holds: Selecting | Named) -> str:
    if isinstance(holds, Named):
        return f"ports-{_short(f'{holds.protocol} {holds.name}')}"
    namespaces = "" if holds.namespaces is None else _text(holds.namespaces)
    return f"pods-{_short(f'{holds.namespace}/{namespaces}/{_text(holds.pods)}')}"


def _text(selector: Selector) -> str:
    return f"{[(one.key, one.operator, sorted(one.values)) for one in selector.requirements]}"


def _short(what: str) -> str:
    """Long enough that nobody finds a selector whose set would be another's."""
    return hashlib.sha256(what.encode()).hexdigest()[:32]


def _limits(one: Compiled) -> tuple[Selecting, frozenset[str]]:
    return one.subjects, frozenset(one.rules)


def _discard(groups: dict[T, dict[S, None]], group: T, member: S) -> None:
    groups[group].pop(member, None)
    if not groups[group]:
        del groups[group]
