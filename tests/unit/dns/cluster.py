"""A zone with what is in it, asked as a client asks it, by dnspython."""

from __future__ import annotations

from collections.abc import Sequence

import dns.message
import dns.rcode
import dns.rdatatype

from podling.dns.responder import Responder
from podling.dns.zone import SERVICE_LABEL, Zone
from podling.model.types.core import Namespace
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta
from podling.model.types.service import Service, ServicePort, ServiceSpec

DOMAIN = "cluster.local"


def service(
    name: str, *, namespace: str = "default", ports: Sequence[ServicePort] = (), **spec: object
) -> Service:
    made = ServiceSpec(ports=list(ports), **spec)  # type: ignore[arg-type]
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=made)


def endpoint(address: str, hostname: str | None = None, *, ready: bool | None = None) -> Endpoint:
    return Endpoint(addresses=[address], hostname=hostname, conditions=EndpointConditions(ready=ready))


def slice_of(
    service: str,
    *endpoints: Endpoint,
    ports: Sequence[SlicePort] = (),
    name: str = "",
    namespace: str = "default",
) -> EndpointSlice:
    meta = ObjectMeta(name=name or f"{service}-1", namespace=namespace, labels={SERVICE_LABEL: service})
    return EndpointSlice(metadata=meta, endpoints=list(endpoints), ports=list(ports))


class Cluster:
    """`zone`, and who asks it."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.zone = Zone(DOMAIN, lambda: self.seconds)
        self.zone.is_synced = True
        self.responder = Responder(self.zone)
        for name in ("default", "kube-system"):
            self.zone.namespace_changed(None, Namespace(metadata=ObjectMeta(name=name)))

    def add(self, *objects: Service | EndpointSlice) -> None:
        for obj in objects:
            if isinstance(obj, Service):
                self.zone.service_changed(None, obj)
            else:
                self.zone.slice_changed(None, obj)

    def ask(
        self, name: str, type_: str = "A", *, is_stream: bool = False, edns: int = -1
    ) -> dns.message.Message:
        """The reply; asked for again, it must be the same."""
        query = dns.message.make_query(name, type_, use_edns=0 if edns >= 0 else False, payload=max(edns, 0))
        replies = []
        for _ in range(2):
            said = self.responder.reply(query.to_wire(), is_stream=is_stream)
            assert said is not None
            reply = dns.message.from_wire(said, raise_on_truncation=False)
            assert query.is_response(reply)
            replies.append(reply)
        first, again = ({str(item) for rrset in one.answer for item in rrset} for one in replies)
        assert first == again
        return replies[0]

    def told(self, name: str, type_: str = "A") -> tuple[str, list[str]]:
        """The code of the reply, and its answers: owner, type and data, sorted."""
        reply = self.ask(name, type_, is_stream=True)
        said = [
            f"{rrset.name} {dns.rdatatype.to_text(rrset.rdtype)} {item}"
            for rrset in reply.answer
            for item in rrset
        ]
        return dns.rcode.to_text(reply.rcode()), sorted(said)


def usual() -> Cluster:
    """A cluster with a service of every sort."""
    made = Cluster()
    http, dns_port = (
        ServicePort(name="http", protocol="TCP", port=80),
        ServicePort(name="d", protocol="UDP", port=53),
    )
    made.add(
        service("web", cluster_ip="10.96.0.20", cluster_ips=["10.96.0.20"], ports=[http]),
        slice_of("web", endpoint("10.1.0.2"), ports=[SlicePort(name="http", protocol="TCP", port=8080)]),
        service("both", cluster_ips=["10.96.0.21", "fd00::21"], ports=[http, dns_port]),
        service("db", cluster_ips=["None"], ports=[ServicePort(name="sql", protocol="TCP", port=5432)]),
        slice_of(
            "db",
            endpoint("10.1.0.3", "db-0", ready=True),
            endpoint("10.1.0.4", "db-1"),
            endpoint("10.1.0.5", "db-2", ready=False),
            endpoint("10.1.0.6"),
            ports=[SlicePort(name="sql", protocol="TCP", port=5432)],
        ),
        slice_of(
            "db",
            endpoint("fd00::7"),
            name="db-v6",
            ports=[SlicePort(name="sql", protocol="TCP", port=5432)],
        ),
        service("empty", cluster_ips=["None"]),
        service("bare", cluster_ips=["None"]),
        slice_of("bare", endpoint("10.1.0.8", "only")),
        service("out", type="ExternalName", external_name="Example.com"),
        service("in", type="ExternalName", external_name="web.default.svc.cluster.local"),
        service("twice", type="ExternalName", external_name="in.default.svc.cluster.local"),
        service("ping", type="ExternalName", external_name="pong.default.svc.cluster.local"),
        service("pong", type="ExternalName", external_name="ping.default.svc.cluster.local"),
        service("lost", type="ExternalName", external_name="none.default.svc.cluster.local"),
        service("kube-dns", namespace="kube-system", cluster_ips=["10.96.0.10"], ports=[dns_port]),
    )
    return made
