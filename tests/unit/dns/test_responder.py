"""Packets of every kind: each gets the reply that the RFCs give it, or none, none an exception."""

from __future__ import annotations

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podling.dns.responder import Unanswered
from podling.model.types.discovery import SlicePort
from unit.dns.cluster import Cluster, endpoint, service, slice_of, usual


@pytest.fixture
def cluster() -> Cluster:
    return usual()


WEB = "web.default.svc.cluster.local."
COOKIE = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"12345678")
QUERY = dns.message.make_query(WEB, "A", id=4711).to_wire()


def test_the_name_comes_back_in_the_letters_it_was_asked_in(cluster: Cluster) -> None:
    mixed = "wEb.DEFAULT.svc.cluSTER.loCAL."
    for _ in range(2):
        said = cluster.responder.reply(dns.message.make_query(mixed, "A").to_wire())
        assert said is not None
        reply = dns.message.from_wire(said)
        assert reply.question[0].name.to_text() == reply.answer[0].name.to_text() == mixed


@pytest.mark.parametrize("name", [WEB, "none.cluster.local."])
@pytest.mark.parametrize("edns", [-1, 0, 512, 4096])
def test_a_reply_has_edns_if_the_query_has(cluster: Cluster, name: str, edns: int) -> None:
    reply = cluster.ask(name, edns=edns)
    assert (reply.edns, reply.payload) == ((0, 1232) if edns >= 0 else (-1, 0))
    assert reply.flags == dns.flags.QR | dns.flags.AA | dns.flags.RD | reply.rcode()


def test_options_of_edns_and_its_flag_are_taken(cluster: Cluster) -> None:
    query = dns.message.make_query(WEB, "A", use_edns=0, want_dnssec=True, options=[COOKIE])
    said = cluster.responder.reply(query.to_wire())
    assert said is not None
    reply = dns.message.from_wire(said)
    assert reply.ednsflags & dns.flags.DO
    assert len(reply.answer) == 1


def test_flags_are_copied_as_they_should_be(cluster: Cluster) -> None:
    for flags in range(0, 0x800, 0x10):
        query = dns.message.make_query(WEB, "A")
        query.flags = flags
        said = cluster.responder.reply(query.to_wire())
        assert said is not None
        reply = dns.message.from_wire(said)
        assert reply.flags == dns.flags.QR | dns.flags.AA | flags & (dns.flags.RD | dns.flags.CD)


@pytest.mark.parametrize("edns", [-1, 512, 1232, 4096])
def test_what_is_too_long_is_cut_between_records(cluster: Cluster, edns: int) -> None:

    many = [endpoint(f"10.2.{number // 250}.{number % 250}") for number in range(400)]
    cluster.add(service("many", cluster_ips=["None"]), slice_of("many", *many, ports=[SlicePort(port=1)]))
    room = 512 if edns < 0 else min(edns, 1232)
    for type_ in ("A", "SRV"):
        name = "many.default.svc.cluster.local."
        query = dns.message.make_query(name, type_, use_edns=0 if edns >= 0 else False, payload=max(edns, 0))
        said = cluster.responder.reply(query.to_wire())
        assert said is not None and len(said) <= room
        reply = dns.message.from_wire(said)
        assert reply.flags & dns.flags.TC and reply.answer[0]
        whole = cluster.ask(name, type_, is_stream=True)
        assert not whole.flags & dns.flags.TC and len(whole.answer[0]) == 400


def test_additional_records_are_the_first_to_go(cluster: Cluster) -> None:

    some = [endpoint(f"10.2.0.{number}") for number in range(1, 8)]
    cluster.add(service("some", cluster_ips=["None"]), slice_of("some", *some, ports=[SlicePort(port=1)]))
    reply = cluster.ask("some.default.svc.cluster.local.", "SRV")
    assert not reply.flags & dns.flags.TC
    assert len(reply.answer[0]) == 7
    assert 0 < len(reply.additional) < 7


def changed(at: int, value: bytes) -> bytes:
    return QUERY[:at] + value + QUERY[at + len(value) :]


@pytest.mark.parametrize(
    ("packet", "rcode"),
    [
        (b"", None),
        (QUERY[:11], None),
        (changed(2, b"\x80"), None),
        (changed(2, b"\x08"), dns.rcode.NOTIMP),
        (changed(2, b"\x28"), dns.rcode.NOTIMP),
        (changed(4, b"\0\0"), dns.rcode.FORMERR),
        (changed(4, b"\0\2"), dns.rcode.FORMERR),
        (changed(6, b"\0\1"), dns.rcode.FORMERR),
        (changed(8, b"\0\2"), dns.rcode.FORMERR),
        (changed(10, b"\0\1"), dns.rcode.FORMERR),
        (changed(10, b"\0\3"), dns.rcode.FORMERR),
        (QUERY[:-1], dns.rcode.FORMERR),
        (QUERY[:20], dns.rcode.FORMERR),
        (QUERY[:12], dns.rcode.FORMERR),
        (changed(12, b"\xc0\x0c"), dns.rcode.FORMERR),
        (changed(12, b"\x41"), dns.rcode.FORMERR),
        (QUERY[:12] + b"\1a" * 127 + b"\1a\0\0\1\0\1", dns.rcode.FORMERR),
        (QUERY[:-2] + b"\0\3", dns.rcode.REFUSED),
        (QUERY[:-4] + b"\0\xfc\0\1", dns.rcode.REFUSED),
        (QUERY[:-4] + b"\0\xfb\0\1", dns.rcode.REFUSED),
        (changed(10, b"\0\1") + b"\0\0\x29\4\xd0\0\1\0\0\0\0", dns.rcode.BADVERS),
        (changed(10, b"\0\2") + b"\0\0\x29\4\xd0\0\0\0\0\0\0" * 2, dns.rcode.FORMERR),
        (changed(10, b"\0\1") + b"\0\0\x29\4\xd0\0\0\0\0\0\5", dns.rcode.FORMERR),
        (changed(10, b"\0\1") + b"\1a\0\0\x29\4\xd0\0\0\0\0\0\0", dns.rcode.FORMERR),
        (QUERY + b"more", dns.rcode.NOERROR),
    ],
)
def test_a_malformed_query_is_told_so(cluster: Cluster, packet: bytes, rcode: int | None) -> None:
    said = cluster.responder.reply(packet)
    if rcode is None:
        assert said is None
        return
    assert said is not None
    reply = dns.message.from_wire(said)
    assert (reply.rcode(), said[:2]) == (rcode, packet[:2])
    assert reply.flags & dns.flags.QR


@given(
    st.binary(max_size=80)
    | st.tuples(st.integers(0, len(QUERY)), st.binary(max_size=8)).map(lambda c: changed(*c))
)
@example(changed(12, b"\0"))
def test_no_packet_is_too_much(packet: bytes) -> None:

    try:
        said = Cluster().responder.reply(packet)
    except Unanswered as asked:
        assert asked.query.id == packet[:2]
        return
    if said is not None:
        reply = dns.message.from_wire(said)
        assert reply.flags & dns.flags.QR
        assert len(said) <= 512
