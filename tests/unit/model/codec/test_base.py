"""What every API type is made of."""

from __future__ import annotations

import pytest

from podling.model.codec import json
from podling.model.codec.fields import Object, Part, always, wire_name

WIRE_NAMES = {
    "name": "name",
    "api_version": "apiVersion",
    "pod_ip": "podIP",
    "pod_ips": "podIPs",
    "host_pid": "hostPID",
    "pod_cidrs": "podCIDRs",
    "container_id": "containerID",
    "downward_api": "downwardAPI",
    "set_hostname_as_fqdn": "setHostnameAsFQDN",
    "dns_policy": "dnsPolicy",
    "continue_": "continue",
}


@pytest.mark.parametrize(("attribute", "wire"), WIRE_NAMES.items())
def test_wire_names(attribute: str, wire: str) -> None:
    assert wire_name(attribute) == wire


class Nested(Part):
    word: str = ""


class Everything(Object):
    KIND = "Everything"
    API_VERSION = "test/v1"

    kept: bool = always(bool)
    listed: list[str] = always(list)
    struct: Nested = always(Nested)
    pointer: Nested | None = None
    words: list[str] = []
    number: int = 0


def test_zero_is_left_out_but_where_go_writes_it() -> None:
    assert json.encode(Everything()) == (
        b'{"kind":"Everything","apiVersion":"test/v1","kept":false,"listed":[],"struct":{}}'
    )


def test_an_empty_struct_behind_a_pointer_is_written() -> None:
    assert json.encode(Everything(pointer=Nested())).endswith(b'"struct":{},"pointer":{}}')


def test_kind_and_version_that_were_sent_are_kept() -> None:
    sent = json.decode(b'{"kind":"Other","apiVersion":"v2"}', Everything)
    assert (sent.kind, sent.api_version) == ("Other", "v2")


def test_lists_are_not_shared_between_objects() -> None:
    one, other = Everything(), Everything()
    one.words.append("x")
    assert other.words == []
