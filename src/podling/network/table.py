"""The nftables table of one address family: what is in it, and the script of each change. Pure.

There is one map for all endpoints of a protocol, and a chain for each *number* of endpoints that occurs, not
for a service or an endpoint: a change is a few elements of maps, whatever the number of services
(docs/decisions/068). Services with session affinity or source ranges have chains of their own.

    vips           address . protocol . port → number of a chain
    goals          number of a chain → goto CHAIN
    tcp-endpoints  address . port . index → address . port
    own            address . protocol . port → goto CHAIN, of those that have chains of their own
    nodeports, node-goals, nodeport-tcp-endpoints, node-own: the same without the first address
    local-tcp-endpoints, …: those of this node, for services that keep the clients' addresses
    refused, dropped  address . protocol . port; refused-nodeports, dropped-nodeports without the address
    cluster-ips, hairpin: sets

Chain `e3` picks one of three endpoints: `dnat to (address . port . random index below 3) @tcp-endpoints`.
Those with `node-` do it for node ports, whose keys have no address; `l3` takes endpoints of this node.

The number of a chain waits in the packet's priority from one map to the next. A verdict in the map of
addresses would need no second map, but the kernel follows all verdicts of a table whenever one of them
changes, and the number of a service's endpoints changes often (docs/decisions/132).

Maps and sets have `typeof` in place of `type`, and no rule has a map of its own: nft 1.0.6 crashes where such
are in a table, also another's, that nft 1.1 has made.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from podling.network.services import Backend, Behind, Frontend

MARK = "0x4000"
"""The bit of a packet's mark that says to masquerade it: kube-proxy's."""
PROTOCOLS = ("tcp", "udp", "sctp")
"""Each has maps of its own: nft 1.0.6 cannot read a map back whose data is a port of any protocol."""
NUMBERS = {"cluster": 0, "outside": 0x4000, "local": 0x8000, "own": 0xC000}
"""Of chains by their way, without the numbers of endpoints."""
MOST = 0x3FFF
"""Endpoints that a frontend can lead to."""
DSTNAT = -100
"""The priority at which destinations are translated. Of chains with the same the newest comes first."""
REFUSING_PRIORITY = -20
"""Before the filters of others, so that they do not drop what is to be refused aloud."""


class Family(NamedTuple):
    """Names of nftables: its table family, addresses of the machine itself."""

    api: str
    name: str
    loopback: str


IPV4 = Family("IPv4", "ip", "127.0.0.0/8")
IPV6 = Family("IPv6", "ip6", "::1")


class Shape(msgspec.Struct, frozen=True):
    """What the table of a family is for: the subnet of this node's pods, and of the services' addresses, both
    empty if unknown. Of the tables of several podlings that have the same node port, the one with the least
    `turn` has it."""

    family: Family
    table: str
    pods: str = ""
    services: str = ""
    turn: int = 0


class _Parts(NamedTuple):
    """What a frontend has in the table. `elements` are of maps, by map and key; `members` are of sets, which
    frontends may share; `chains` are its own with their rules, `sets` with their definition; `shared` are the
    chains of no frontend that it needs."""

    elements: dict[tuple[str, str], str]
    members: tuple[tuple[str, str], ...]
    chains: dict[str, tuple[str, ...]]
    sets: dict[str, str]
    shared: tuple[str, ...]


_NOTHING = _Parts({}, (), {}, {}, ())


def turn_of(table: str, chains: str) -> int:
    """The turn of a table in what `nft list chains` says; if it is not there, that after all others'."""
    turns = {}
    for one in chains.split("\ntable "):
        head, _, rest = one.partition(" {")
        name = head.split()[-1] if head else ""
        found = re.search(r"hook prerouting priority (?:dstnat(?: \+ (\d+))?|(-\d+));", rest)
        if found and name.startswith("podling") and name.endswith("-services"):
            turns[name] = int(found[2]) - DSTNAT if found[2] else int(found[1] or 0)
    return turns.get(table, max(turns.values(), default=-1) + 1)


class Stale(NamedTuple):
    """Entries of connection tracking that a change has made wrong: those that lead to `backends`, or, if
    `whole`, those that lead to none of them."""

    frontend: Frontend
    backends: frozenset[Backend]
    whole: bool


class ServiceTable:
    """What the kernel is to have. `change` gives the script that brings it there."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._held: dict[Frontend, Behind] = {}
        self._members: Counter[tuple[str, str]] = Counter()
        self._shared: set[str] = set()

    def change(self, wanted: Mapping[Frontend, Behind | None]) -> tuple[str, list[Stale]]:
        """Have these frontends lead to what is given, or to nothing. Returns the script of one transaction,
        empty if nothing changes, and what to forget once it is done."""
        script, stale = Script(self.shape), list[Stale]()
        for frontend, behind in wanted.items():
            before = self._held.get(frontend)
            after = _placed(before, behind)
            if after == before:
                continue
            if after is None:
                del self._held[frontend]
            else:
                self._held[frontend] = after
            if frontend.protocol != "tcp" and (gone := _stale(frontend, before, after)):
                stale.append(gone)
            self._add(script, _parts(frontend, before, self.shape), _parts(frontend, after, self.shape))
        return script.text(), stale

    def _add(self, script: Script, old: _Parts, new: _Parts) -> None:
        for chain in new.shared:
            if chain not in self._shared:
                self._shared.add(chain)
                script.chain(chain, shared_chain(chain, self.shape))
                if (goal := _goal(chain))[1]:
                    script.add(goal, f"goto {chain}")
        for name, definition in new.sets.items():
            if name not in old.sets:
                script.own_set(name, definition)
        for name, rules in new.chains.items():
            if old.chains.get(name) != rules:
                script.chain(name, rules)
        for place, value in old.elements.items():
            if new.elements.get(place) != value:
                script.remove(place, value)
        for place, value in new.elements.items():
            if old.elements.get(place) != value:
                script.add(place, value)
        for member in new.members:
            self._members[member] += 1
            if self._members[member] == 1:
                script.add(member, "")
        for member in old.members:
            self._members[member] -= 1
            if not self._members[member]:
                del self._members[member]
                script.remove(member, "")
        script.drop(old.chains.keys() - new.chains.keys(), old.sets.keys() - new.sets.keys())

    def hold(self, wanted: Mapping[Frontend, Behind | None]) -> list[Stale]:
        """As `change`, for a script of the `whole` that is to follow."""
        stale = []
        for frontend, behind in wanted.items():
            gone = _stale(frontend, self._held.pop(frontend, None), behind)
            if behind is not None:
                self._held[frontend] = behind
            if gone and frontend.protocol != "tcp":
                stale.append(gone)
        return stale

    def whole(self) -> str:
        """The script that replaces the table by one with all that is held, in one transaction."""
        fresh = ServiceTable(self.shape)
        script, _ = fresh.change(self._held)
        # The order of endpoints may differ from what was held: theirs is what the kernel has from now on.
        self._held, self._members, self._shared = fresh._held, fresh._members, fresh._shared
        return replacement(self.shape) + script

    def held(self) -> Mapping[Frontend, Behind]:
        return self._held


class Script:
    """Collects the commands of a transaction, and writes them in an order in which each can be done: first
    what others refer to, last what nothing refers to any more."""

    def __init__(self, shape: Shape) -> None:
        self._table = f"{shape.family.name} {shape.table}"
        self._made: list[str] = []
        self._removed: dict[tuple[str, str], str] = {}
        self._added: dict[tuple[str, str], str] = {}
        self._dropped: list[str] = []

    def chain(self, name: str, rules: Sequence[str]) -> None:
        self._made += [f"add chain {self._table} {name}", f"flush chain {self._table} {name}"]
        self._made += [f"add rule {self._table} {name} {rule}" for rule in rules]

    def own_set(self, name: str, definition: str) -> None:
        self._made.append(f"add set {self._table} {name} {definition}")

    def remove(self, place: tuple[str, str], value: str) -> None:
        if self._added.get(place) == value:
            del self._added[place]
        else:
            self._removed[place] = value

    def add(self, place: tuple[str, str], value: str) -> None:
        if self._removed.get(place) == value:
            del self._removed[place]
        else:
            self._added[place] = value

    def drop(self, chains: Iterable[str], sets: Iterable[str]) -> None:
        for name in sorted(chains):
            self._dropped.append(f"delete chain {self._table} {name}")
            self._dropped.insert(0, f"flush chain {self._table} {name}")
        self._dropped += [f"delete set {self._table} {name}" for name in sorted(sets)]

    def text(self) -> str:
        lines = [*self._made]
        for verb, places in (("delete", self._removed), ("add", self._added)):
            by_map: dict[str, list[str]] = {}
            for (name, key), value in places.items():
                by_map.setdefault(name, []).append(_element(key, value))
            lines += [
                f"{verb} element {self._table} {name} {{ {', '.join(elements)} }}"
                for name, elements in by_map.items()
            ]
        lines += self._dropped
        return "\n".join(lines) + "\n" if lines else ""


def replacement(shape: Shape) -> str:
    """An nft script that puts an empty table in the place of whatever is there."""
    family, table = shape.family, f"{shape.family.name} {shape.table}"
    ip = family.name
    where = f"{ip} daddr . meta l4proto . th dport"
    # A cluster IP that nothing was found for has no such port, one out of the range's others is no service's.
    # At the end of the way: a process of the machine hears of a refusal there, as of a port that nobody has.
    # At loopback nftables does not lead to node ports, so it does not refuse there either.
    local = f"fib daddr type local {ip} daddr != {family.loopback}"
    port = "meta l4proto . th dport"
    nodeports = "".join(
        f" ct state new {local} {port} @{name}-nodeports {verdict};"
        for name, verdict in (("refused", "goto say-no"), ("dropped", "drop"))
    )
    unused = [f"    {ip} daddr {shape.services} drop"] if shape.services else []
    lines = [
        f"table {table} {{}}",
        f"delete table {table}",
        f"table {table} {{",
        *(
            f"  map {name} {{ typeof {key} : {value}; }}"
            for names, key in (
                (("vips", "goals", "own"), where),
                (("nodeports", "node-goals", "node-own"), port),
            )
            for name, key, value in zip(
                names, (key, "meta priority", key), ("meta priority", "verdict", "verdict"), strict=True
            )
        ),
        *(f"  set {name} {{ typeof {where}; }}" for name in ("refused", "dropped")),
        *(f"  set {name}-nodeports {{ typeof {port}; }}" for name in ("refused", "dropped")),
        *(
            f"  map {maps}{protocol}-endpoints {{ typeof {address}{protocol} dport . numgen random mod 65536"
            f" : {ip} daddr . {protocol} dport; }}"
            for protocol in PROTOCOLS
            for maps, address in (
                ("", f"{ip} daddr . "),
                ("local-", f"{ip} daddr . "),
                ("nodeport-", ""),
                ("nodeport-local-", ""),
            )
        ),
        f"  set cluster-ips {{ typeof {ip} daddr; }}",
        f"  set hairpin {{ typeof {ip} saddr . {ip} daddr; }}",
        # The kernel limits how often it tells by ICMP: clients that come often would wait (decision 086).
        "  chain say-no { meta l4proto tcp reject with tcp reset; reject; }",
        "  chain services {",
        # Of a key that is not there nothing more of the rule is done.
        f"    meta priority set {where} map @vips meta priority vmap @goals",
        f"    {local} meta priority set {port} map @nodeports meta priority vmap @node-goals",
        "  }",
        "  chain refusing {",
        f"    {where} @refused goto say-no",
        f"    {where} @dropped drop",
        f"    {ip} daddr @cluster-ips goto say-no",
        *unused,
        "  }",
        f"  chain prerouting {{ type nat hook prerouting priority {DSTNAT + shape.turn}; jump services; }}",
        f"  chain nat-output {{ type nat hook output priority {DSTNAT + shape.turn}; jump services; }}",
        *(
            f"  chain {hook} {{ type filter hook {hook} priority {REFUSING_PRIORITY};"
            f" ct state new jump refusing;{more} }}"
            for hook, more in (("input", nodeports), ("forward", ""), ("output", ""))
        ),
        "  chain postrouting {",
        "    type nat hook postrouting priority srcnat;",
        f"    meta mark & {MARK} != 0 meta mark set meta mark ^ {MARK} masquerade fully-random",
        f"    ct status dnat {ip} saddr . {ip} daddr @hairpin masquerade fully-random",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def removal(shape: Shape) -> str:
    table = f"{shape.family.name} {shape.table}"
    return f"table {table} {{}}\ndelete table {table}\n"


def shared_chain(name: str, shape: Shape) -> tuple[str, ...]:
    """The rules of a chain that is for all services with the same numbers of endpoints: `e3`, `l3`,
    `cluster3`, `outside3`, `local3-1`, and the same with `node-` before it; `own`."""
    ip = shape.family.name
    prefix, way, number, of_node = _split(name)
    maps, address = ("nodeport-", "") if prefix else ("", f"{ip} daddr . ")
    masquerade = f"meta mark set meta mark | {MARK}"
    # The network's queues shall not take the number of the chain for the packet's priority.
    reset = "meta priority set 0"
    match way:
        case "e" | "l":
            maps += "local-" if way == "l" else ""
            return tuple(
                f"meta l4proto {protocol} dnat {ip} to {address}{protocol} dport"
                f" . numgen random mod {number} map @{maps}{protocol}-endpoints"
                for protocol in PROTOCOLS
            )
        case "own":
            return (f"{address}meta l4proto . th dport vmap @{prefix}own",)
        case "cluster":
            marks = (f"{ip} saddr != {shape.pods} {masquerade}",) if shape.pods else ()
            return (reset, *marks, f"goto {prefix}e{number}")
        case "outside":
            return (reset, masquerade, f"goto {prefix}e{number}")
    inside: tuple[str, ...] = ()
    if number != "0":
        of_pods = (f"{ip} saddr {shape.pods} goto {prefix}e{number}",) if shape.pods else ()
        inside = (
            *of_pods,
            f"fib saddr type local {masquerade}",
            f"fib saddr type local goto {prefix}e{number}",
        )
    return (reset, *inside, *((f"goto {prefix}l{of_node}",) if of_node != "0" else ()))


@lru_cache(maxsize=1024)
def _goal(name: str) -> tuple[str, str]:
    """The map that leads to a shared chain, and its number as nftables writes a packet's priority; that is
    empty for `e3` and `l3`."""
    prefix, way, number, of_node = _split(name)
    at = f"{NUMBERS[way] | int(number or 0):x}:{int(of_node or 0):x}" if way in NUMBERS else ""
    return f"{prefix}goals", at


def _split(name: str) -> tuple[str, str, str, str]:
    """`node-local3-1` → `node-`, `local`, `3`, `1`."""
    kind = name.removeprefix("node-")
    way = kind.rstrip("0123456789-")
    number, _, of_node = kind.removeprefix(way).partition("-")
    return name[: len(name) - len(kind)], way, number, of_node


def _placed(before: Behind | None, wanted: Behind | None) -> Behind | None:
    """`wanted`, with its endpoints in the places they have before: where one is gone the last moves in, so
    that few elements change."""
    if before is None or wanted is None:
        return wanted
    return msgspec.structs.replace(
        wanted,
        endpoints=_in_places(before.endpoints, wanted.endpoints),
        local=_in_places(before.local, wanted.local),
    )


def _in_places(before: Sequence[Backend], wanted: Sequence[Backend]) -> tuple[Backend, ...]:
    staying = set(wanted)
    new = [one for one in wanted if one not in set(before)]
    places: list[Backend | None] = [one if one in staying else None for one in before]
    new.reverse()
    for index, one in enumerate(places):
        if one is None and new:
            places[index] = new.pop()
    while None in places:
        last = places.pop()
        if last is not None:
            places[places.index(None)] = last
    return (*(one for one in places if one is not None), *reversed(new))


def _stale(frontend: Frontend, before: Behind | None, after: Behind | None) -> Stale | None:
    old = {*before.endpoints, *before.local} if before else set[Backend]()
    new = {*after.endpoints, *after.local} if after else set[Backend]()
    if new and not old:
        # Packets that came when there was nobody went elsewhere, and would do so on and on.
        return Stale(frontend, frozenset(new), whole=True)
    return Stale(frontend, frozenset(old - new), whole=False) if old - new else None


def _parts(frontend: Frontend, behind: Behind | None, shape: Shape) -> _Parts:
    if behind is None:
        return _NOTHING
    address, protocol, port = frontend.address, frontend.protocol, frontend.port
    prefix, maps, ports = ("", "", "") if address else ("node-", "nodeport-", "-nodeports")
    key = f"{address} . {protocol} . {port}" if address else f"{protocol} . {port}"
    members = [("hairpin", f"{one} . {one}") for one in behind.hairpin]
    if behind.way == "cluster":
        members.append(("cluster-ips", address))
    start = f"{address} . {port}" if address else f"{port}"
    endpoints, local = behind.endpoints[:MOST], behind.local[:MOST]
    elements = {
        (f"{maps}{of_node}{protocol}-endpoints", f"{start} . {index}"): f"{ip} . {number}"
        for of_node, backends in (("", endpoints), ("local-", local))
        for index, (ip, number) in enumerate(backends)
    }
    if behind.refusal:
        elements[("dropped" if behind.refusal == "drop" else "refused") + ports, key] = ""
    if not endpoints and not local:
        return _Parts(elements, tuple(members), {}, {}, ())
    numbers = f"{len(endpoints)}" + (f"-{len(local)}" if behind.way == "local" else "")
    shared = [f"{prefix}{behind.way}{numbers}"]
    if endpoints:
        shared.insert(0, f"{prefix}e{len(endpoints)}")
    if local:
        shared.insert(0, f"{prefix}l{len(local)}")
    chains: dict[str, tuple[str, ...]] = {}
    sets: dict[str, str] = {}
    if behind.affinity or behind.sources:
        goal = f"own-{_short(frontend)}"
        opening: tuple[str, ...] = ()
        if behind.sources:
            opening = (f"{shape.family.name} saddr != {{ {', '.join(behind.sources)} }} drop",)
        if behind.affinity:
            chains, sets = _affine(goal, prefix, behind, shape)
            chains[goal] = (*opening, *chains[goal])
        else:
            chains[goal] = (*opening, f"goto {shared[-1]}")
        elements[f"{prefix}own", key] = f"goto {goal}"
        shared.append(f"{prefix}own")
    elements["vips" if address else "nodeports", key] = _goal(shared[-1])[1]
    return _Parts(elements, tuple(members), chains, sets, tuple(shared))


def rules(frontend: Frontend, behind: Behind, shape: Shape) -> Iterator[tuple[str, str, str]]:
    """What the table has for a frontend where packets begin: map or set, the key of an element, and the whole
    element as nftables writes it."""
    parts = _parts(frontend, behind, shape)
    goals = {_goal(name): f"goto {name}" for name in parts.shared[-1:]}
    for (name, key), value in {**parts.elements, **goals}.items():
        if not name.endswith("-endpoints"):
            yield name, key, _element(key, value)


def _element(key: str, value: str) -> str:
    return f"{key} : {value}" if value else key


def _short(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:12]


def _affine(
    goal: str, prefix: str, behind: Behind, shape: Shape
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Chains, the last by the name `goal`, and sets of a frontend whose clients stay with an endpoint: each
    endpoint has a set of its clients, from which they go after a time."""
    ip, chosen = shape.family.name, behind.endpoints
    if behind.way == "local":
        # What it has for pods and for the node itself, who need not stay with one.
        opening = shared_chain(f"{prefix}local{len(chosen)}-0", shape)
        chosen = behind.local
    else:
        opening = shared_chain(f"{prefix}{behind.way}{len(chosen)}", shape)[:-1]
    # A set cannot be changed, so for another timeout there is another.
    names = {one: f"{goal}-{_short((one, behind.affinity))}" for one in chosen}
    chains = {
        name: (
            f"update @{name}-clients {{ {ip} saddr }}",
            f"meta l4proto {{ {', '.join(PROTOCOLS)} }} dnat {ip} to {_joined(backend)}",
        )
        for backend, name in names.items()
    }
    of_clients = f"typeof {ip} saddr; flags dynamic,timeout; timeout {behind.affinity}s; size 65535;"
    sets = {f"{name}-clients": f"{{ {of_clients} }}" for name in names.values()}
    stays = [f"{ip} saddr @{name}-clients goto {name}" for name in names.values()]
    left = range(len(names), 0, -1)
    first = [f"numgen random mod {of} 0 goto {name}" for of, name in zip(left, names.values(), strict=True)]
    return {**chains, goal: (*opening, *stays, *first)}, sets


def _joined(backend: Backend) -> str:
    address, port = backend
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
