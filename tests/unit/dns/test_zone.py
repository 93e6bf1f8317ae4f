"""Every record of Kubernetes' DNS specification 1.1.0, and what CoreDNS answers where nothing is."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.reversename
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podling.dns.responder import Unanswered
from podling.dns.zone import Zone, pod_address
from podling.model.types.core import Namespace
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.service import Service, ServicePort, ServiceSpec
from unit.dns.cluster import Cluster, endpoint, service, slice_of, usual


@pytest.fixture
def cluster() -> Cluster:
    return usual()


WEB, DB, BOTH = (
    "web.default.svc.cluster.local.",
    "db.default.svc.cluster.local.",
    "both.default.svc.cluster.local.",
)
HTTP = f"_http._tcp.{WEB}"


@pytest.mark.parametrize(
    ("name", "type_", "answers"),
    [
        (WEB, "A", ["A 10.96.0.20"]),
        (BOTH, "A", ["A 10.96.0.21"]),
        (BOTH, "AAAA", ["AAAA fd00::21"]),
        (WEB, "SRV", [f"SRV 0 100 80 {WEB}"]),
        (HTTP, "SRV", [f"SRV 0 100 80 {WEB}"]),
        (HTTP, "A", ["A 10.96.0.20"]),
        (f"_d._udp.{BOTH}", "SRV", [f"SRV 0 50 53 {BOTH}"]),
        (BOTH, "SRV", [f"SRV 0 25 53 {BOTH}", f"SRV 0 25 80 {BOTH}"]),
        (f"10-1-0-2.{WEB}", "A", ["A 10.1.0.2"]),
        (DB, "A", ["A 10.1.0.3", "A 10.1.0.4", "A 10.1.0.6"]),
        (DB, "AAAA", ["AAAA fd00::7"]),
        (f"db-0.{DB}", "A", ["A 10.1.0.3"]),
        (f"10-1-0-6.{DB}", "A", ["A 10.1.0.6"]),
        (f"fd00--7.{DB}", "AAAA", ["AAAA fd00::7"]),
        (
            f"_sql._tcp.{DB}",
            "SRV",
            [f"SRV 0 25 5432 {host}.{DB}" for host in ("10-1-0-6", "db-0", "db-1", "fd00--7")],
        ),
        (f"db-1.{DB}", "SRV", [f"SRV 0 100 5432 db-1.{DB}"]),
        ("bare.default.svc.cluster.local.", "A", ["A 10.1.0.8"]),
        ("only.bare.default.svc.cluster.local.", "A", ["A 10.1.0.8"]),
        ("1-2-3-4.default.pod.cluster.local.", "A", ["A 1.2.3.4"]),
        ("fd00--a.default.pod.cluster.local.", "AAAA", ["AAAA fd00::a"]),
        ("dns-version.cluster.local.", "TXT", ['TXT "1.1.0"']),
        ("out.default.svc.cluster.local.", "CNAME", ["CNAME example.com."]),
        ("20.0.96.10.in-addr.arpa.", "PTR", [f"PTR {WEB}"]),
        (str(dns.reversename.from_address("fd00::21")), "PTR", [f"PTR {BOTH}"]),
        ("3.0.1.10.in-addr.arpa.", "PTR", [f"PTR db-0.{DB}"]),
        ("ns.dns.cluster.local.", "A", ["A 10.96.0.10"]),
        ("cluster.local.", "NS", ["NS kube-dns.kube-system.svc.cluster.local."]),
        (
            "cluster.local.",
            "SOA",
            ["SOA ns.dns.cluster.local. hostmaster.cluster.local. 1000 7200 1800 86400 5"],
        ),
    ],
)
def test_a_name_has_its_records(cluster: Cluster, name: str, type_: str, answers: list[str]) -> None:
    assert cluster.told(name, type_) == ("NOERROR", [f"{name} {answer}" for answer in answers])


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        (WEB, "AAAA"),
        (WEB, "TXT"),
        (WEB, "MX"),
        (WEB, "HTTPS"),
        (WEB, "ANY"),
        (f"db-0.{DB}", "AAAA"),
        ("cluster.local.", "A"),
        ("svc.cluster.local.", "A"),
        ("pod.cluster.local.", "A"),
        ("default.svc.cluster.local.", "A"),
        ("default.pod.cluster.local.", "AAAA"),
        ("1-2-3-4.default.pod.cluster.local.", "AAAA"),
        ("bare.default.svc.cluster.local.", "SRV"),
        ("ping.default.svc.cluster.local.", "A"),
        ("lost.default.svc.cluster.local.", "A"),
        ("out.default.svc.cluster.local.", "TXT"),
    ],
)
def test_a_name_has_nothing_of_a_type(cluster: Cluster, name: str, type_: str) -> None:
    assert cluster.told(name, type_) == ("NOERROR", [])
    assert "SOA ns.dns.cluster.local. hostmaster" in str(cluster.ask(name, type_).authority[0])


@pytest.mark.parametrize(
    "name",
    [
        "none.default.svc.cluster.local.",
        "web.none.svc.cluster.local.",
        "none.svc.cluster.local.",
        "none.cluster.local.",
        "dns-version.cluster.local.",
        f"_https._tcp.{WEB}",
        f"_http._udp.{WEB}",
        f"a._http._tcp.{WEB}",
        f"db-2.{DB}",
        f"10-1-0-4.{DB}",
        "empty.default.svc.cluster.local.",
        "web.default.cluster.local.",
        "1-2-3.default.pod.cluster.local.",
        "1-2-3-4.none.pod.cluster.local.",
        "a.out.default.svc.cluster.local.",
        "example.com.default.svc.cluster.local.",
    ],
)
def test_a_name_does_not_exist(cluster: Cluster, name: str) -> None:
    reply = cluster.ask(name)
    assert reply.rcode() == dns.rcode.NXDOMAIN
    assert reply.authority[0].ttl == 5


def test_another_name_is_followed_inside(cluster: Cluster) -> None:
    code, answers = cluster.told("twice.default.svc.cluster.local.")
    assert code == "NOERROR"
    assert answers == [
        "in.default.svc.cluster.local. CNAME web.default.svc.cluster.local.",
        "twice.default.svc.cluster.local. CNAME in.default.svc.cluster.local.",
        f"{WEB} A 10.96.0.20",
    ]


@pytest.mark.parametrize(
    "name", ["example.com.", "9.9.9.9.in-addr.arpa.", "xcluster.local.", "out.default.svc.cluster.local."]
)
def test_what_is_outside_is_asked_elsewhere(cluster: Cluster, name: str) -> None:
    with pytest.raises(Unanswered) as asked:
        cluster.ask(name)
    begun = asked.value.begun
    assert (begun is not None) == name.startswith("out.")
    assert begun is None or (len(begun.records), begun.target) == (1, b"\7example\3com\0")


def test_addresses_of_a_service_record_come_with_it(cluster: Cluster) -> None:
    reply = cluster.ask(f"_sql._tcp.{DB}", "SRV", is_stream=True)
    said = {f"{rrset.name} {item}" for rrset in reply.additional for item in rrset}
    assert said == {
        f"db-0.{DB} 10.1.0.3",
        f"db-1.{DB} 10.1.0.4",
        f"10-1-0-6.{DB} 10.1.0.6",
        f"fd00--7.{DB} fd00::7",
    }


def test_nothing_is_denied_before_everything_was_read(cluster: Cluster) -> None:
    cluster.zone.is_synced = False
    assert cluster.told("late.default.svc.cluster.local.") == ("SERVFAIL", [])
    assert cluster.told(WEB)[0] == "NOERROR"


def test_addresses_take_turns_at_being_the_first(cluster: Cluster) -> None:
    firsts = {str(cluster.ask(DB).answer[0][0]) for _ in range(3)}
    assert len(firsts) == 3


def test_a_change_is_seen_by_the_next_question(cluster: Cluster) -> None:
    old = Service(metadata=ObjectMeta(name="web", namespace="default"))
    for number in range(30, 33):
        address = f"10.96.0.{number}"
        new = replace(old, spec=ServiceSpec(cluster_ips=[address], ports=[ServicePort(port=1)]))
        cluster.zone.service_changed(old, new)
        assert cluster.told(WEB) == ("NOERROR", [f"{WEB} A {address}"])
        assert cluster.told(f"{number}.0.96.10.in-addr.arpa.", "PTR")[1] == [
            f"{number}.0.96.10.in-addr.arpa. PTR {WEB}"
        ]
    cluster.zone.service_changed(new, None)
    assert cluster.told(WEB) == ("NXDOMAIN", [])


def test_a_namespace_takes_its_names_with_it(cluster: Cluster) -> None:
    default = Namespace(metadata=ObjectMeta(name="default"))
    assert cluster.told(WEB)[0] == "NOERROR"
    cluster.zone.namespace_changed(default, None)
    assert cluster.told(WEB)[0] == "NXDOMAIN"
    cluster.zone.namespace_changed(None, default)
    assert cluster.told(WEB)[0] == "NOERROR"


NAMES = ("a", "b", "c")
ADDRESSES = ("10.1.0.1", "10.1.0.2", "fd00::1")
service_kinds = st.sampled_from(
    (
        ServiceSpec(cluster_ips=["10.96.0.1"], ports=[ServicePort(name="p", protocol="TCP", port=1)]),
        ServiceSpec(
            cluster_ips=["10.96.0.2", "fd00::2"], ports=[ServicePort(name="q", protocol="UDP", port=2)]
        ),
        ServiceSpec(cluster_ips=["None"]),
        ServiceSpec(type="ExternalName", external_name="b.default.svc.cluster.local"),
    )
)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("service"), st.sampled_from(NAMES), st.none() | service_kinds),
        st.tuples(
            st.just("slice"),
            st.sampled_from(NAMES),
            st.none()
            | st.lists(st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(("", "h"))), max_size=3),
        ),
        st.tuples(st.just("namespace"), st.just("default"), st.booleans()),
        st.tuples(st.just("ask"), st.sampled_from(NAMES), st.just(None)),
    ),
    max_size=10,
)


@given(changes)
def test_after_any_changes_answers_are_those_of_a_new_zone(story: list[tuple[str, str, object]]) -> None:

    lived = Cluster()
    services: dict[str, Service] = {}
    slices: dict[str, EndpointSlice] = {}
    here = True

    def everything(one: Cluster) -> list[object]:
        asked: list[object] = []
        for name in NAMES:
            full = f"{name}.default.svc.cluster.local."
            for question in (full, f"h.{full}", f"10-1-0-1.{full}", f"_p._tcp.{full}"):
                asked.extend(one.told(question, type_) for type_ in ("A", "AAAA", "SRV"))
        for address in (*ADDRESSES, "10.96.0.1", "10.96.0.2", "fd00::2"):
            try:
                asked.append(one.told(str(dns.reversename.from_address(address)), "PTR"))
            except Unanswered:
                asked.append(None)
        return asked

    for what, name, value in story:
        if what == "ask":
            everything(lived)
        elif what == "namespace":
            if bool(value) != here:
                one = Namespace(metadata=ObjectMeta(name="default"))
                lived.zone.namespace_changed(None if value else one, one if value else None)
                here = bool(value)
        elif what == "service":
            old = services.pop(name, None)
            if isinstance(value, ServiceSpec):
                services[name] = Service(metadata=ObjectMeta(name=name, namespace="default"), spec=value)
            if old or name in services:
                lived.zone.service_changed(old, services.get(name))
        else:
            before = slices.pop(name, None)
            if isinstance(value, list):
                slices[name] = slice_of(name, *(endpoint(address, host or None) for address, host in value))
            if before or name in slices:
                lived.zone.slice_changed(before, slices.get(name))
    fresh = Cluster()
    if not here:
        fresh.zone.namespace_changed(Namespace(metadata=ObjectMeta(name="default")), None)
    fresh.add(*services.values(), *slices.values())
    # A service keeps its place in the order in which addresses are looked up.
    alone = len({tuple(one.spec.cluster_ips) for one in services.values()}) == len(services)
    if alone:
        assert everything(lived) == everything(fresh)


@given(st.text())
def test_a_pods_name_has_an_address_or_none(label: str) -> None:
    address = pod_address(label)
    assert address is None or set(address) <= set("0123456789abcdefABCDEF.:")


def test_a_zone_is_empty_again_once_everything_is_gone(cluster: Cluster) -> None:
    zone = Zone("cluster.local", lambda: 0.0)

    one, its = service("a", cluster_ips=["10.0.0.1"]), slice_of("a", endpoint("10.1.0.1", "h"))
    zone.service_changed(None, one)
    zone.slice_changed(None, its)
    zone.find(b"\1a\7default\3svc\7cluster\5local\0", 1)
    zone.service_changed(one, None)
    zone.slice_changed(its, None)
    tables = (zone.known, zone._services, zone._slices, zone._kept, zone._of_address, zone._of_endpoint)
    assert not any(tables)
