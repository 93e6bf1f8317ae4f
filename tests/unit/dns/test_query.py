"""What `podling dns query` asks, and how it shows what it is told; dnspython has made the replies."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from podling.dns.cache import Asked, read_reply
from podling.dns.query import Said, address_of, candidates, shown
from podling.dns.wire import AAAA, SRV, TXT, A, encode, text

NAME = "web.default.svc.cluster.local."


def said(type_: int, *records: str, rcode: int = 0) -> Said:
    query = dns.message.make_query(NAME, dns.rdatatype.RdataType(type_))
    reply = dns.message.make_response(query)
    reply.set_rcode(dns.rcode.Rcode(rcode))
    for one in records:
        kind, _, data = one.partition(" ")
        reply.answer.append(dns.rrset.from_text(NAME, 5, "IN", kind, data))
    asked = Asked(encode(NAME), type_, do=False, cd=False)
    wire = reply.to_wire()
    return Said(encode(NAME), type_, read_reply(wire, wire[:2], asked), 0.0004)


@pytest.mark.parametrize(
    ("type_", "record"),
    [
        (A, "A 10.96.0.5"),
        (AAAA, "AAAA fd00::1"),
        (SRV, "SRV 0 100 80 web.default.svc.cluster.local."),
        (TXT, 'TXT "1.1.0" "x"'),
        (A, "CNAME other.test."),
    ],
)
def test_records_are_shown_as_zone_files_have_them(type_: int, record: str) -> None:
    assert shown([said(type_, record)])[1] == f"  {NAME} 5 {record}"


def test_what_was_said_of_each_name() -> None:
    assert shown([said(A, "A 10.96.0.5")])[0] == f"{NAME} A: NOERROR, 0.4 ms"
    assert shown([said(A, rcode=3)]) == [f"{NAME} A: NXDOMAIN, 0.4 ms"]
    assert shown([said(A)]) == [f"{NAME} A: NOERROR, but no record of this type, 0.4 ms"]
    assert shown([Said(encode(NAME), A, None, 5.0)]) == [f"{NAME} A: no answer within 5 s"]


def test_names_are_tried_as_a_pods_resolver_does() -> None:
    below = ["web.ns.svc.c.test.", "web.svc.c.test.", "web.c.test."]
    assert [text(one) for one in candidates("Web", "ns", "c.test")] == [*below, "web."]
    assert text(candidates("a.b.c.d.e.f", "ns", "c.test")[0]) == "a.b.c.d.e.f."
    assert [text(one) for one in candidates("a.test.", "ns", "c.test")] == ["a.test."]
    assert address_of("10.96.0.5") == encode("5.0.96.10.in-addr.arpa")
    assert address_of("web") is None
