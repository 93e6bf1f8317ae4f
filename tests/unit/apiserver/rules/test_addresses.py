"""R-SYS-1: addresses that programs read differently are refused, oddly written ones are warned of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.kind import Kind, storage_key
from podling.apiserver.kinds.services import Endpoints, EndpointSlices, Services
from podling.apiserver.rules.addresses import (
    ip_faults,
    parsed_loosely,
    unsuitable,
    validate_cidr,
    warn_of_cidr,
    warn_of_ip,
)
from podling.model.codec import json
from podling.model.codec.json import from_data
from podling.model.types.service import Service

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
ZEROS = "must not have leading 0s"
MAPPED = "must not be an IPv4-mapped IPv6 address"


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("10.0.0.1", ""),
        ("0.0.0.0", ""),
        ("100.20.0.10", ""),
        ("2001:DB8::0:1", ""),
        ("2001:0db8::0001", ""),
        ("010.0.0.1", ZEROS),
        ("10.000.0.001", ZEROS),
        ("::ffff:10.0.0.01", ZEROS),
        ("::ffff:010.0.0.1", ZEROS),
        ("::ffff:10.0.0.1", MAPPED),
        ("fe80::1%eth0", NO_ADDRESS),
        ("10.0.0", NO_ADDRESS),
        ("0300.0.0.1", NO_ADDRESS),
        ("10.0.0.1/8", NO_ADDRESS),
        ("", NO_ADDRESS),
    ],
)
def test_what_is_an_address(address: str, fault: str) -> None:
    assert ip_faults(address) == ([fault] if fault else [])


CIDR_ZEROS = "must not have leading 0s in IP or prefix length"
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


@pytest.mark.parametrize(
    ("cidr", "fault"),
    [
        ("10.0.0.0/8", ""),
        ("0.0.0.0/0", ""),
        ("10.0.0.1/32", ""),
        ("2001:DB8::/64", ""),
        ("::/0", ""),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
        ("2001:db8::1/64", "must not have bits set beyond the prefix length"),
        ("10.0.0.0/08", CIDR_ZEROS),
        ("010.0.0.0/8", CIDR_ZEROS),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.0", NO_CIDR),
        ("10.0.0.0/", NO_CIDR),
        ("10.0.0.0/33", NO_CIDR),
        ("10.0.0.0/+8", NO_CIDR),
        ("10.0.0.0/8/8", NO_CIDR),
        ("", NO_CIDR),
    ],
)
def test_what_is_a_subnet(cidr: str, fault: str) -> None:
    faults = [cause.message for cause in validate_cidr(cidr, "p")]
    assert faults == ([f'Invalid value: "{cidr}": {fault}'] if fault else [])
    assert list(validate_cidr(cidr, "p", {cidr})) == []


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("10.0.0.1", ""),
        ("224.0.1.1", ""),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("0::0", "may not be unspecified (0::0)"),
        ("127.1.2.3", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("224.0.0.5", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("ff02::5", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ],
)
def test_what_can_be_reached(address: str, fault: str) -> None:
    assert unsuitable(address) == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.00.01", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::ffff:010.0.0.01", "10.0.0.1"),
        ("2001:0DB8::1", "2001:db8::1"),
        ("0300.0.0.1", "None"),
        ("fe80::1%eth0", "None"),
    ],
)
def test_how_addresses_were_read_before(address: str, meant: str) -> None:
    assert str(parsed_loosely(address)) == meant


@pytest.mark.parametrize("address", ["010.0.0.1", "::ffff:10.0.0.1"])
def test_what_may_stay_is_warned_of(address: str) -> None:
    assert list(warn_of_ip(address, "p")) == [
        f'p: non-standard IP address "{address}" is invalid: use "10.0.0.1"'
    ]
    assert list(warn_of_ip("10.0.0.1", "p")) == list(warn_of_ip("nonsense", "p")) == []


@pytest.mark.parametrize(
    ("cidr", "warning"),
    [
        ("10.0.0.0/8", ""),
        ("2001:db8::/64", ""),
        (
            "10.1.2.3/8",
            'CIDR value "10.1.2.3/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.1.2.3/32"?)',
        ),
        (
            "2001:DB8::/64",
            'IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")',
        ),
        ("nonsense", ""),
    ],
)
def test_how_a_subnet_is_written(cidr: str, warning: str) -> None:
    assert list(warn_of_cidr(cidr, "p")) == ([f"p: {warning}"] if warning else [])


ODD, PLAIN = "2001:DB8::0:1", "2001:db8::1"
SAID = f'IPv6 address "{ODD}" should be in RFC 5952 canonical format ("{PLAIN}")'
HEADLESS = {"type": "ClusterIP", "clusterIP": "None"}


@pytest.mark.parametrize(
    ("kind", "data", "warnings"),
    [
        (Services(), {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}, []),
        (Services(), {"spec": {"clusterIP": ODD}}, [f"spec.clusterIPs[0]: {SAID}"]),
        (
            Services(),
            {"spec": {"externalIPs": [PLAIN, ODD]}},
            [
                f"spec.externalIPs[1]: {SAID}",
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            ],
        ),
        (
            Services(),
            {"spec": {"loadBalancerIP": ODD, "loadBalancerSourceRanges": ["10.1.2.3/8"]}},
            [
                f"spec.loadBalancerIP: {SAID}",
                'spec.loadBalancerSourceRanges[0]: CIDR value "10.1.2.3/8" is ambiguous in this context '
                '(should be "10.0.0.0/8" or "10.1.2.3/32"?)',
            ],
        ),
        (
            Services(),
            {"spec": {**HEADLESS, "externalIPs": ["10.0.0.1"], "sessionAffinity": "ClientIP"}},
            [
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
        ),
        (
            Services(),
            {"spec": {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["10.0.0.1"]}},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
        ),
        (
            Services(),
            {"spec": {"externalName": "a.b", "trafficDistribution": "PreferClose"}},
            [
                'spec.externalName is ignored when spec.type is not "ExternalName"',
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ],
        ),
        (
            Services(),
            {"metadata": {"annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}}},
            [
                "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
                "service.kubernetes.io/topology-mode instead"
            ],
        ),
        (
            EndpointSlices(),
            {"addressType": "IPv6", "endpoints": [{"addresses": [PLAIN]}, {"addresses": [PLAIN, ODD]}]},
            [f"endpoints[1].addresses[1]: {SAID}"],
        ),
        (
            EndpointSlices(),
            {"addressType": "FQDN", "endpoints": [{"addresses": ["a.b"]}]},
            ["spec.addressType: FQDN endpoints are deprecated"],
        ),
        (
            Endpoints(),
            {"subsets": [{"addresses": [{"ip": PLAIN}], "notReadyAddresses": [{"ip": ODD}]}]},
            [f"subsets[0].notReadyAddresses[0].ip: {SAID}"],
        ),
    ],
)
def test_warnings(kind: Kind[Any], data: dict[str, Any], warnings: list[str]) -> None:
    obj = from_data({"metadata": {}, **data}, kind.resource.type)
    kind.default(obj)
    kind.prepare_create(obj, NOW)
    assert kind.warnings(obj) == warnings


async def test_they_come_with_the_answer(api: Conversation) -> None:
    services = "/api/v1/namespaces/default/services"
    spec = {"ports": [{"port": 80}], "externalIPs": ["010.0.0.1", "127.0.0.1"]}
    refused = await api.post(services, {"metadata": {"name": "s"}, "spec": spec})
    assert refused.status == 422
    assert [(cause["field"], cause["message"]) for cause in refused.body["details"]["causes"]] == [
        ("spec.externalIPs[0]", f'Invalid value: "010.0.0.1": {ZEROS}'),
        (
            "spec.externalIPs[1]",
            'Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        ),
    ]
    made = await api.post(services, {"metadata": {"name": "s"}, "spec": {**spec, "externalIPs": [ODD]}})
    assert made.status == 201
    assert made.headers["Warning"].startswith('299 - "spec.externalIPs[0]: IPv6 address \\"2001:DB8::0:1\\"')


def service(**spec: Any) -> Service:
    obj = from_data(
        {
            "metadata": {"name": "s", "namespace": "default", "uid": "u"},
            "spec": {"ports": [{"port": 80}], **spec},
        },
        Service,
    )
    Services().default(obj)
    Services().prepare_create(obj, NOW)
    return obj


@pytest.mark.parametrize(
    ("before", "after", "faults"),
    [
        ({"externalIPs": ["010.0.0.1"]}, {"externalIPs": ["010.0.0.1"]}, {}),
        ({"externalIPs": ["010.0.0.1"]}, {"externalIPs": ["10.0.0.2", "010.0.0.1", "::1:1"]}, {}),
        ({"externalIPs": ["::ffff:10.0.0.1"]}, {"externalIPs": ["::ffff:10.0.0.1"]}, {}),
        ({"externalIPs": ["010.0.0.1"]}, {"externalIPs": ["010.0.0.2"]}, {"spec.externalIPs[0]": ZEROS}),
        ({}, {"externalIPs": ["::ffff:127.0.0.1"]}, {"spec.externalIPs[0]": MAPPED}),
        (
            {"externalIPs": ["0127.0.0.1"]},
            {"externalIPs": ["0127.0.0.1"]},
            {"spec.externalIPs[0]": "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
        ),
        ({"clusterIP": "010.0.0.1"}, {"clusterIP": "010.0.0.1"}, {}),
        (
            {"clusterIP": "010.0.0.1"},
            {"clusterIP": "010.0.0.1", "externalIPs": ["010.0.0.1"]},
            {"spec.externalIPs[0]": ZEROS},
        ),
    ],
)
def test_what_a_service_has_from_before_it_may_keep(
    before: dict[str, Any], after: dict[str, Any], faults: dict[str, str]
) -> None:
    causes = Services().validate_changed(service(**after), service(**before))
    assert {cause.field: cause.message.split(": ", 2)[-1] for cause in causes} == faults


OLD = "::ffff:10.96.0.9"


async def test_a_service_of_other_times_can_be_updated_and_its_status_without_a_warning(
    api: Conversation,
) -> None:
    services = "/api/v1/namespaces/default/services"
    spec = {"ports": [{"port": 80}], "type": "LoadBalancer"}
    made = await api.post(services, {"metadata": {"name": "s"}, "spec": spec})
    assert made.status == 201
    key = storage_key(Services.resource, "default", "s")
    stored = await api.storage.get(key)
    assert stored
    obj = json.decode(stored.value, Service)
    obj.spec.cluster_ip, obj.spec.cluster_ips, obj.spec.external_ips = OLD, [OLD], ["010.0.0.1"]
    await api.storage.update(key, json.encode(obj), stored.revision)
    labelled = await api.patch(f"{services}/s", {"metadata": {"labels": {"a": "b"}}})
    assert (labelled.status, labelled.body["spec"]["clusterIPs"]) == (200, [OLD])
    assert f'spec.clusterIPs[0]: non-standard IP address \\"{OLD}\\"' in labelled.headers["Warning"]
    balancer = {"loadBalancer": {"ingress": [{"ip": "10.0.0.9"}]}}
    reported = await api.patch(f"{services}/s/status", {"status": balancer})
    assert (reported.status, "Warning" in reported.headers) == (200, False)
    moved = await api.patch(f"{services}/s", {"spec": {"externalIPs": ["010.0.0.2"]}})
    assert (moved.status, moved.body["details"]["causes"][0]["field"]) == (422, "spec.externalIPs[0]")
