"""The names of a cluster, by Kubernetes' DNS specification 1.1.0, from its Services, EndpointSlices and
Namespaces. Where the specification leaves open whether a name is not there or has nothing of a type, the
answer is CoreDNS'.

An answer is made when it is first asked for and kept as bytes (`known`) until an object changes that it came
from (docs/decisions/067). Nothing is kept for names that do not exist, so memory is bounded by the objects.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from podling.dns.answers import Answer
from podling.dns.wire import (
    AAAA,
    CNAME,
    HEAD,
    IN,
    NS,
    NXDOMAIN,
    PTR,
    QUESTION_NAME,
    SERVFAIL,
    SOA,
    SRV,
    TXT,
    A,
    encode,
    is_below,
    join,
    record,
    split,
)
from podling.model.types.core import Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service

VERSION = "1.1.0"
"""Of the specification."""
TTL, VERSION_TTL = 5, 28800
"""Seconds."""
REFRESH, RETRY, EXPIRE = 7200, 1800, 86400
"""Seconds, of the SOA record."""
SERVICE_LABEL = "kubernetes.io/service-name"
NONE, EXTERNAL_NAME = "None", "ExternalName"
DNS_NAMESPACE, DNS_SERVICE = "kube-system", "kube-dns"
"""The service by which pods find cluster DNS."""
REVERSE = (encode("in-addr.arpa"), encode("ip6.arpa"))
MOST_ALIASES = 8
_FAMILIES = {A: socket.AF_INET, AAAA: socket.AF_INET6}
_KEPT_TYPES = frozenset((A, AAAA, SRV))
_FURTHEST = 0x3FFF
"""The last place in a message to which a pointer leads."""

K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")
Key = tuple[str, str]
"""Namespace and name of a service."""


class Target(NamedTuple):
    """What a name of a service leads to: an address under a name of its own, or with no address, another
    name. A `port` of -1 is none."""

    address: str
    name: bytes
    port: int


class Elsewhere(NamedTuple):
    """The answer begins with these records and goes on with what is known of `target`, a name outside."""

    records: tuple[bytes, ...]
    target: bytes


class Names(NamedTuple):
    """The labels below the zone, taken apart. What is empty was not asked for."""

    service: str = ""
    endpoint: str = ""
    port: str = ""
    protocol: str = ""


class Zone:
    """Feed it with the changes of informers. `seconds` is the time for the SOA's serial number."""

    def __init__(self, domain: str, seconds: Callable[[], float]) -> None:
        self.name = encode(domain.lower())
        self.known: dict[bytes, Answer] = {}
        """Question in lower case → answer."""
        self.is_synced = False
        self._seconds = seconds
        self._services: dict[Key, Service] = {}
        self._slices: dict[Key, dict[str, EndpointSlice]] = {}
        self._namespaces: set[str] = set()
        self._kept: dict[str, dict[str, list[bytes]]] = {}
        """Namespace → service → the questions of it that are known."""
        self._of_address: dict[str, dict[Key, None]] = {}
        """Cluster IP → services."""
        self._of_endpoint: dict[str, dict[tuple[Key, str], str]] = {}
        """Address → (service, slice) → host name."""
        self._services_suffix = join([b"svc"], self.name)
        self._serial = -1
        self._nothing = Answer()
        self._no_name = Answer(rcode=NXDOMAIN)
        self._changed()

    @property
    def nothing(self) -> Answer:
        """The name exists, but has no record of the type."""
        return self._nothing

    def namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        one = new or old
        assert one is not None
        if (old is None) == (new is None):
            return
        name = one.metadata.name
        if new is None:
            self._namespaces.discard(name)
        else:
            self._namespaces.add(name)
        for service in tuple(self._kept.get(name, ())):
            self._forget((name, service))
        self._changed()

    def service_changed(self, old: Service | None, new: Service | None) -> None:
        one = new or old
        assert one is not None
        key = one.metadata.namespace, one.metadata.name
        known = self._services.pop(key, None)
        if new is not None:
            self._services[key] = new
        if known is not None and new is not None and known.spec == new.spec:
            return
        for address in known.spec.cluster_ips if known else ():
            _take(self._of_address, address, key)
        for address in new.spec.cluster_ips if new else ():
            if address and address != NONE:
                self._of_address.setdefault(address, {})[key] = None
        self._forget(key)
        self._changed()

    def slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        # The label may change, and with it the service.
        if old is not None:
            key, name = _service_of(old), old.metadata.name
            _take(self._slices, key, name)
            for address in _named(old):
                _take(self._of_endpoint, address, (key, name))
            self._forget(key)
        if new is not None:
            key, name = _service_of(new), new.metadata.name
            self._slices.setdefault(key, {})[name] = new
            for address, hostname in _named(new).items():
                self._of_endpoint.setdefault(address, {})[key, name] = hostname
            self._forget(key)
        self._changed()

    def find(self, name: bytes, type_: int) -> Answer | Elsewhere | None:
        """What a name in lower case has of a type; None if the zone knows nothing of such names."""
        if (kept := self.known.get(_question(name, type_))) is not None:
            return kept
        if not is_below(name, self.name):
            return self._pointers(name, type_) if name.endswith(REVERSE) else None
        labels = split(name[: len(name) - len(self.name)] + b"\0")
        if not labels:
            return self._of_the_zone(type_)
        answer = self._find(name, labels, type_)
        if answer is None:
            # What has not been read yet may well be there.
            return self._no_name if self.is_synced else Answer(rcode=SERVFAIL)
        return answer

    def _find(self, name: bytes, labels: list[bytes], type_: int) -> Answer | Elsewhere | None:
        """None if the name does not exist."""
        *below, kind = labels
        if labels == [b"dns-version"]:
            text = bytes((len(VERSION),)) + VERSION.encode()
            found = Answer([record(QUESTION_NAME, TXT, VERSION_TTL, text)])
            return found if type_ == TXT else None
        if labels == [b"ns", b"dns"]:
            return self._addresses(self._name_servers(), type_)
        if kind not in (b"svc", b"pod"):
            return None
        if not below:
            return self._nothing
        *below, label = below
        namespace = label.decode("latin-1")
        if namespace not in self._namespaces:
            return None
        if not below:
            return self._nothing
        if (asked := _taken_apart(below)) is None:
            return None
        if kind == b"pod":
            address = pod_address(asked.service)
            if address is None:
                return None
            return self._addresses([Target(address, b"", 0)], type_)
        key = namespace, asked.service
        targets = self._targets(key, asked)
        if targets is None:
            return None
        if any(not target.address for target in targets):
            return self._alias(targets[0], name, type_)
        answer = self._answer(targets, type_, len(name))
        if type_ in _KEPT_TYPES:
            question = _question(name, type_)
            self.known[question] = answer
            self._kept.setdefault(namespace, {}).setdefault(key[1], []).append(question)
        return answer

    def _targets(self, key: Key, asked: Names) -> list[Target] | None:
        """None if the name does not exist."""
        service = self._services.get(key)
        if service is None:
            return None
        base = join([key[1].encode(), key[0].encode()], self._services_suffix)
        if service.spec.type == EXTERNAL_NAME:
            if asked.endpoint or asked.port or asked.protocol:
                return None
            try:
                return [Target("", encode(service.spec.external_name.lower()), 0)]
            except ValueError:
                return None
        if asked.endpoint or NONE in service.spec.cluster_ips:
            slices = self._slices.get(key, {})
            targets = [
                Target(address, base if not label else join([label], base), port)
                for one in slices.values()
                for address, label in _ready(one)
                if asked.endpoint in ("", label.decode())
                for port in _ports(one, asked)
            ]
        else:
            targets = [
                Target(address, base, port.port)
                for port in service.spec.ports
                if _is_asked_for(port.name, port.protocol, asked)
                for address in service.spec.cluster_ips
            ]
        return targets or None

    def _answer(self, targets: list[Target], type_: int, length: int) -> Answer:
        """`length` is that of the name asked for."""
        if type_ != SRV:
            return self._addresses(targets, type_)
        weight = max(100 // len(targets), 1)
        services: dict[tuple[bytes, int], bytes] = {}
        addresses: dict[tuple[bytes, str], bytes] = {}
        places: dict[bytes, int] = {}
        at = HEAD + length + 4
        for target in targets:
            if target.port == -1:
                continue
            if (target.name, target.port) not in services:
                data = struct.pack(">HHH", 0, weight, target.port) + target.name
                made = record(QUESTION_NAME, SRV, TTL, data)
                services[target.name, target.port] = made
                at += len(made)
                places.setdefault(target.name, at - len(target.name))
            place = places[target.name]
            owner = target.name if place > _FURTHEST else struct.pack(">H", 0xC000 | place)
            kind = AAAA if ":" in target.address else A
            packed = socket.inet_pton(_FAMILIES[kind], target.address)
            addresses.setdefault((target.name, target.address), record(owner, kind, TTL, packed))
        return Answer([*services.values()], [*addresses.values()]) if services else self._nothing

    def _addresses(self, targets: Iterable[Target], type_: int) -> Answer:
        family = _FAMILIES.get(type_)
        if family is None:
            return self._nothing
        found = dict.fromkeys(
            target.address for target in targets if (":" in target.address) == (type_ == AAAA)
        )
        made = [record(QUESTION_NAME, type_, TTL, socket.inet_pton(family, address)) for address in found]
        return Answer(made, rotates=True) if made else self._nothing

    def _alias(self, target: Target, name: bytes, type_: int) -> Answer | Elsewhere:
        """Of a service that is another name."""
        if type_ == SRV:
            return Answer([record(QUESTION_NAME, SRV, TTL, struct.pack(">HHH", 0, 100, 0) + target.name)])
        if type_ not in (A, AAAA, CNAME):
            return self._nothing
        chain, seen = [record(QUESTION_NAME, CNAME, TTL, target.name)], {name}
        if type_ == CNAME:
            return Answer(chain)
        at = target.name
        while is_below(at, self.name):
            if at in seen or len(chain) > MOST_ALIASES:
                return self._nothing
            seen.add(at)
            found = self._final(at, type_)
            if isinstance(found, bytes):
                chain.append(record(at, CNAME, TTL, found))
                at = found
            else:
                return Answer([*chain, *found]) if found else self._nothing
        return Elsewhere(tuple(chain), at)

    def _final(self, name: bytes, type_: int) -> bytes | list[bytes]:
        """The name that a name of the zone is an alias of, or its records, with their owner."""
        labels = split(name[: len(name) - len(self.name)] + b"\0")
        *below, namespace, kind = labels if len(labels) > 2 else (b"", b"", b"")
        asked = _taken_apart(below)
        if kind == b"svc" and asked and namespace.decode("latin-1") in self._namespaces:
            targets = self._targets((namespace.decode("latin-1"), asked.service), asked) or []
            if targets and not targets[0].address:
                return targets[0].name
        found = self.find(name, type_)
        if not isinstance(found, Answer) or not found.counts[0]:
            return []
        body, count = found.body, found.counts[0]
        size = len(body) // count
        return [name + body[at + 2 : at + size] for at in range(0, size * count, size)]

    def _pointers(self, name: bytes, type_: int) -> Answer | None:
        if type_ != PTR:
            return None
        address = _reversed(name)
        owners: Iterable[bytes] = ()
        if services := self._of_address.get(address):
            namespace, service = next(iter(services))
            owners = [join([service.encode(), namespace.encode()], self._services_suffix)]
        elif endpoints := self._of_endpoint.get(address):
            owners = [
                join([hostname.encode(), service.encode(), namespace.encode()], self._services_suffix)
                for ((namespace, service), _), hostname in endpoints.items()
            ]
        made = [record(QUESTION_NAME, PTR, TTL, owner) for owner in dict.fromkeys(owners)]
        return Answer(made) if made else None

    def _of_the_zone(self, type_: int) -> Answer:
        if type_ == SOA:
            return Answer([self._soa()])
        servers = self._name_servers() if type_ == NS else []
        if not servers:
            return self._nothing
        kind = AAAA if ":" in servers[0].address else A
        packed = socket.inet_pton(_FAMILIES[kind], servers[0].address)
        name = servers[0].name
        return Answer([record(QUESTION_NAME, NS, TTL, name)], [record(name, kind, TTL, packed)])

    def _name_servers(self) -> list[Target]:
        return self._targets((DNS_NAMESPACE, DNS_SERVICE), Names(DNS_SERVICE)) or []

    def _soa(self) -> bytes:
        numbers = struct.pack(">IIIII", self._serial, REFRESH, RETRY, EXPIRE, TTL)
        server, master = join([b"ns", b"dns"], self.name), join([b"hostmaster"], self.name)
        return record(self.name, SOA, TTL, server + master + numbers)

    def _changed(self) -> None:
        serial = int(self._seconds()) & 0xFFFFFFFF
        if serial == self._serial:
            return
        self._serial = serial
        for negative in (self._nothing, self._no_name):
            negative.set_authority([self._soa()])

    def _forget(self, key: Key) -> None:
        for question in _take(self._kept, key[0], key[1]) or ():
            del self.known[question]


def pod_address(label: str) -> str | None:
    """The address that stands in a pod's name, with `-` for `.` or `:`."""
    is_v4 = label.count("-") == 3 and "--" not in label
    address = label.replace("-", "." if is_v4 else ":")
    try:
        socket.inet_pton(socket.AF_INET if is_v4 else socket.AF_INET6, address)
    except (OSError, ValueError):
        return None
    return address


def _question(name: bytes, type_: int) -> bytes:
    return name + struct.pack(">HH", type_, IN)


def _taken_apart(labels: list[bytes]) -> Names | None:
    """The labels before the namespace; None for more than any name has."""
    match [label.decode("latin-1") for label in labels]:
        case [service]:
            return Names(service)
        case [endpoint, service]:
            return Names(service, endpoint=endpoint)
        case [port, protocol, service]:
            return Names(service, port=port.removeprefix("_"), protocol=protocol.removeprefix("_"))
    return None


def _is_asked_for(name: str, protocol: str, asked: Names) -> bool:
    return asked.port in ("", name) and asked.protocol in ("", protocol.lower())


def _ports(one: EndpointSlice, asked: Names) -> Iterator[int]:
    if not one.ports and not asked.port and not asked.protocol:
        yield -1
    for port in one.ports:
        if _is_asked_for(port.name or "", port.protocol or "", asked):
            yield port.port or 0


def _ready(one: EndpointSlice) -> Iterator[tuple[str, bytes]]:
    """Addresses that get traffic, each with the label of its own name."""
    for endpoint in one.endpoints:
        if endpoint.conditions.ready is not False:
            for address in endpoint.addresses:
                label = endpoint.hostname or address.replace(".", "-").replace(":", "-")
                yield address, label.encode()


def _named(one: EndpointSlice) -> Mapping[str, str]:
    """Address → host name, of the endpoints that are found by their address."""
    return {
        address: endpoint.hostname
        for endpoint in one.endpoints
        if endpoint.hostname and endpoint.conditions.ready is not False
        for address in endpoint.addresses
    }


def _service_of(one: EndpointSlice) -> Key:
    return one.metadata.namespace, one.metadata.labels.get(SERVICE_LABEL, "")


def _reversed(name: bytes) -> str:
    """The address of a reverse name as Kubernetes writes it; "" for what is none."""
    labels = [label.decode("latin-1") for label in reversed(split(name))]
    if labels[1] == "in-addr":
        family, address = socket.AF_INET, ".".join(labels[2:])
    elif len(labels) != 34:
        return ""
    else:
        digits = "".join(labels[2:])
        family = socket.AF_INET6
        address = ":".join(digits[at : at + 4] for at in range(0, len(digits), 4))
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, address))
    except (OSError, ValueError):
        return ""


def _take(table: dict[K, dict[L, V]], outer: K, inner: L) -> V | None:
    """Take the value out, and with the last one its table."""
    inside = table.get(outer)
    if inside is None:
        return None
    value = inside.pop(inner, None)
    if not inside:
        del table[outer]
    return value
