"""R-SYS-1: addresses behind a service, in both of its kinds: what is refused, and what may stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.kind import Kind
from podling.apiserver.kinds.services import Endpoints, EndpointSlices
from podling.model.codec.json import from_data

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

NO_NAME = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"  # noqa: E501
NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
ADDRESS = {"ip": "10.0.0.1"}


def made(kind: Kind[Any], data: dict[str, Any]) -> Any:
    obj = from_data({"metadata": {"name": "e", "namespace": "n"}, **data}, kind.resource.type)
    kind.default(obj)
    return obj


def faults(kind: Kind[Any], data: dict[str, Any]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in kind.validate(made(kind, data))]


SUBSETS: list[tuple[dict[str, Any], list[str]]] = [
    ({"addresses": [ADDRESS]}, []),
    ({"notReadyAddresses": [{**ADDRESS, "hostname": "a", "nodeName": "n.a"}], "ports": [{"port": 80}]}, []),
    ({}, ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]),
    (
        {"addresses": [{"ip": "10.0.0"}]},
        [
            f'subsets[0].addresses[0].ip: Invalid value: "10.0.0": {why}'
            for why in (NO_IP, "must be a valid IP address")
        ],
    ),
    (
        {"addresses": [{"ip": "127.0.0.1"}]},
        [
            'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range '
            "(127.0.0.0/8, ::1/128)"
        ],
    ),
    (
        {"notReadyAddresses": [{"ip": "fe80::1"}]},
        [
            'subsets[0].notReadyAddresses[0].ip: Invalid value: "fe80::1": may not be in the link-local '
            "range (169.254.0.0/16, fe80::/10)"
        ],
    ),
    (
        {"addresses": [{"ip": "0.0.0.0"}]},
        ['subsets[0].addresses[0].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)'],
    ),
    (
        {"addresses": [{**ADDRESS, "hostname": "A"}]},
        [f'subsets[0].addresses[0].hostname: Invalid value: "A": {NO_NAME}'],
    ),
    (
        {"addresses": [{**ADDRESS, "nodeName": ""}]},
        [
            'subsets[0].addresses[0].nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must '
            "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'example.com', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ],
    ),
    (
        {"addresses": [ADDRESS], "ports": [{"port": 1, "name": "a"}, {"port": 2}]},
        ["subsets[0].ports[1].name: Required value"],
    ),
    (
        {"addresses": [ADDRESS], "ports": [{"port": 0, "protocol": "ICMP"}]},
        [
            "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            'subsets[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
    (
        {"addresses": [ADDRESS], "ports": [{"port": 1, "appProtocol": "a/b/c"}]},
        [
            'subsets[0].ports[0].appProtocol: Invalid value: "a/b/c": a valid label key must consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyName')"
        ],
    ),
]


@pytest.mark.parametrize(("subset", "expected"), SUBSETS)
def test_subsets(subset: dict[str, Any], expected: list[str]) -> None:
    assert faults(Endpoints(), {"subsets": [subset]}) == expected


SLICES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("FQDN", {"addresses": ["a.example.com."]}, []),
    ("FQDN", {"addresses": [""]}, ["addresses[0]: Required value"]),
    (
        "FQDN",
        {"addresses": ["localhost"]},
        [
            'addresses[0]: Invalid value: "localhost": should be a domain with at least two segments '
            "separated by dots"
        ],
    ),
    (
        "FQDN",
        {"addresses": [f"{'a' * 64}.b"]},
        [f'addresses[0]: Invalid value: "{"a" * 64}": must be no more than 63 characters'],
    ),
    (
        "IPv4",
        {"hints": {"forZones": [{"name": "a"}, {"name": "a"}], "forNodes": [{"name": "n"}]}},
        ['hints.forZones[1].name: Duplicate value: "a"'],
    ),
    (
        "IPv4",
        {"hints": {"forZones": [{"name": str(n)} for n in range(9)], "forNodes": [{"name": "N"}]}},
        ["hints.forZones: Too many: 9: must have at most 8 items"],
    ),
    ("IPv4", {"hints": {"forNodes": [{"name": "n"}] * 2}}, ['hints.forNodes[1].name: Duplicate value: "n"']),
]


@pytest.mark.parametrize(("type", "endpoint", "expected"), SLICES)
def test_endpoints_of_slices(type: str, endpoint: dict[str, Any], expected: list[str]) -> None:
    data = {"addressType": type, "endpoints": [{"addresses": ["10.0.0.1"], **endpoint}]}
    assert faults(EndpointSlices(), data) == [f"endpoints[0].{fault}" for fault in expected]


def test_a_port_of_a_slice_speaks_a_protocol_with_a_name() -> None:
    (fault,) = faults(EndpointSlices(), {"addressType": "IPv4", "ports": [{"port": 1, "appProtocol": "a b"}]})
    assert fault.startswith('ports[0].appProtocol: Invalid value: "a b": name part must consist of')


OLDER = [
    (Endpoints(), {"subsets": [{"addresses": [{"ip": "010.0.0.1"}]}]}),
    (EndpointSlices(), {"addressType": "IPv4", "endpoints": [{"addresses": ["010.0.0.1"]}]}),
]


@pytest.mark.parametrize(("kind", "data"), OLDER, ids=["endpoints", "slice"])
def test_what_was_valid_once_may_stay_until_it_is_changed(kind: Kind[Any], data: dict[str, Any]) -> None:
    old, new = made(kind, data), made(kind, data)
    assert kind.validate_changed(new, old) == []
    (new.subsets if isinstance(kind, Endpoints) else new.endpoints).append(
        (old.subsets if isinstance(kind, Endpoints) else old.endpoints)[0]
    )
    assert kind.validate_changed(new, old)


async def test_the_topology_of_the_version_before_is_not_taken(api: Conversation) -> None:
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    endpoint = {"addresses": ["10.0.0.1"], "deprecatedTopology": {"a": "b"}}
    made = await api.post(slices, {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [endpoint]})
    assert made.status == 201 and "deprecatedTopology" not in made.body["endpoints"][0]
    put = await api.put(f"{slices}/s", {**made.body, "endpoints": [endpoint]})
    assert put.status == 200 and "deprecatedTopology" not in put.body["endpoints"][0]


async def test_a_slice_that_becomes_another_services_is_of_a_new_generation(api: Conversation) -> None:
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    await api.post(slices, {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": []})
    for change, generation in (
        ({"metadata": {"annotations": {"a": "b"}}}, 1),
        ({"metadata": {"labels": {"a": "b"}}}, 2),
        ({"metadata": {"labels": {"a": "c"}}, "ports": [{"port": 1}]}, 3),
    ):
        assert (await api.patch(f"{slices}/s", change)).body["metadata"]["generation"] == generation
