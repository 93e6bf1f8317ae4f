"""Search paths walked for pods, as CoreDNS' plugin autopath does: a pod asks for `example.com.NS.svc.ZONE`
first, and is told at once which name of its path exists, as what it asked for is an alias of. So an external
name takes a question for each type instead of one for each domain of the path.

Whose search path it is, is known by the client's address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podling.dns.answers import Answer
from podling.dns.responder import Unanswered
from podling.dns.server import Elsewhere, Reply
from podling.dns.wire import (
    FORMERR,
    LONGEST_NAME,
    NOTIMP,
    NXDOMAIN,
    REFUSED,
    SERVFAIL,
    encode,
    is_below,
    join,
)
from podling.dns.zone import Zone
from podling.model.types.pod import Pod

ENDED = ("Succeeded", "Failed")
PASSED_OVER = (NXDOMAIN, SERVFAIL, REFUSED, FORMERR, NOTIMP)
"""Codes after which the next name is tried."""


class _Path(NamedTuple):
    """What follows from a pod's namespace and `dnsConfig`."""

    namespace: str
    more: tuple[str, ...]


class SearchPaths:
    """Feed it with the changes of pods. `searches` are the domains of the machine's resolv.conf, which pods
    have after those of the cluster."""

    def __init__(self, zone: bytes, searches: Sequence[str]) -> None:
        self._zone = zone
        self._searches = tuple(searches)
        self._of: dict[str, dict[tuple[str, str], _Path]] = {}
        """Address → pod → path."""

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod, is_there in ((old, False), (new, True)):
            if pod is None or (path := _path(pod)) is None:
                continue
            key = pod.metadata.namespace, pod.metadata.name
            for one in pod.status.pod_ips:
                if is_there:
                    self._of.setdefault(one.ip, {})[key] = path
                elif pods := self._of.get(one.ip):
                    pods.pop(key, None)
                    if not pods:
                        del self._of[one.ip]

    def names(self, client: str, name: bytes) -> list[bytes]:
        """What a pod's resolver would ask after `name`, if that is the first of its path. Nothing for an
        address that several pods claim: it may be about to change hands."""
        pods = self._of.get(client, {})
        if len(pods) != 1:
            return []
        (path,) = pods.values()
        services = join([b"svc"], self._zone)
        first = join([path.namespace.encode()], services)
        if name == first or not is_below(name, first):
            return []
        base = name[: len(name) - len(first)]
        below = [services, self._zone, *_encoded((*self._searches, *path.more)), b"\0"]
        return [base + one for one in dict.fromkeys(below) if len(base) + len(one) <= LONGEST_NAME]


def _path(pod: Pod) -> _Path | None:
    """None for a pod whose resolver has no search path of the cluster's, or no address of its own."""
    spec = pod.spec
    if spec.host_network or spec.dns_policy != "ClusterFirst" or pod.status.phase in ENDED:
        return None
    return _Path(pod.metadata.namespace, tuple(spec.dns_config.searches) if spec.dns_config else ())


def _encoded(domains: Sequence[str]) -> Iterator[bytes]:
    for domain in domains:
        try:
            yield encode(domain.lower())
        except ValueError:
            continue  # No resolver can ask for what is below it.


class SearchingForwarder:
    """`ask` is for a `Server`: it asks `forward` for what is not of the zone."""

    def __init__(self, zone: Zone, forward: Elsewhere) -> None:
        self._zone, self._forward = zone, forward

    def ask(self, asked: Unanswered, client: str, reply: Reply) -> None:
        if asked.otherwise is None:
            self._forward(asked, client, reply)
        else:
            self._search(asked, asked.otherwise, iter(asked.names), client, reply)

    def _search(
        self, asked: Unanswered, otherwise: Answer, names: Iterator[bytes], client: str, reply: Reply
    ) -> None:
        """The first of `names` that exists, else what was found of the name that was asked for: the client
        then walks its path itself."""
        query = asked.query
        for name in names:
            found = self._zone.find(name, query.type)
            if isinstance(found, Answer):
                if found.rcode in PASSED_OVER:
                    continue
                reply(found.by_alias(name))
                return

            def told(answer: Answer, name: bytes = name) -> None:
                if answer.rcode in PASSED_OVER:
                    self._search(asked, otherwise, names, client, reply)
                else:
                    reply(answer.by_alias(name))

            renamed = query._replace(name=name, question=name + query.question[-4:])
            self._forward(Unanswered(renamed, found), client, told)
            return
        reply(otherwise)
