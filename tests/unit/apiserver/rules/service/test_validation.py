"""R-SYS-1: what is wrong with a service, field by field, in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.services import Services
from podling.model.types.service import Service

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

MakeService = Callable[..., Service]

BALANCER = {"type": "LoadBalancer"}
EXTERNAL: dict[str, Any] = {"type": "ExternalName", "externalName": "a.b", "ports": None}
ONLY_BALANCERS = "Forbidden: may only be used when `type` is 'LoadBalancer'"
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
HINTS, MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

ACCEPTED = [
    {},
    {"clusterIP": "10.96.0.7"},
    {"clusterIP": "None", "ports": None},
    {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86400}}},
    EXTERNAL,
    {**EXTERNAL, "externalName": "a.b."},
    {**BALANCER, "loadBalancerSourceRanges": [" 10.0.0.0/8 ", "::/0"], "loadBalancerClass": "acme.io/nlb"},
    {**BALANCER, "externalTrafficPolicy": "Local", "healthCheckNodePort": 30500},
    {"externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Local"},
    {"trafficDistribution": "PreferSameNode", "internalTrafficPolicy": "Local"},
    {"ports": [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]},
    {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"], "ipFamilies": ["IPv4", "IPv6"]},
]


@pytest.mark.parametrize("spec", ACCEPTED)
def test_what_is_accepted(make_service: MakeService, spec: dict[str, Any]) -> None:
    assert Services().validate(make_service(**spec)) == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "Odd"},
        'spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", "LoadBalancer", '
        '"NodePort"',
    ),
    (
        {"ports": [{"port": 0, "targetPort": 1}]},
        "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
    ),
    (
        {"ports": [{"port": 1, "protocol": "ICMP"}]},
        'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ),
    (
        {"ports": [{"port": 1, "appProtocol": "a b"}]},
        'spec.ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric '
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  "
        "or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ),
    (
        {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]},
        'spec.ports[1].name: Duplicate value: "a"',
    ),
    (
        {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
        'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":1,'
        '"TargetPort":0,"NodePort":0}',
    ),
    (
        {"ports": [{"port": 1, "nodePort": 30001}]},
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ),
    (
        {
            "type": "NodePort",
            "ports": [
                {"port": 1, "nodePort": 30001, "name": "a"},
                {"port": 2, "nodePort": 30001, "name": "b"},
            ],
        },
        "spec.ports[1].nodePort: Duplicate value: 30001",
    ),
    (
        {"type": "NodePort", "clusterIP": "None"},
        "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
    ),
    (
        {**BALANCER, "clusterIP": "None"},
        "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for LoadBalancer services",
    ),
    (
        {"sessionAffinity": "Odd"},
        'spec.sessionAffinity: Unsupported value: "Odd": supported values: "ClientIP", "None"',
    ),
    (
        {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and "
        "less than 86400",
    ),
    (
        {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}}},
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 "
        "and less than 86400",
    ),
    ({**EXTERNAL, "externalName": None}, "spec.externalName: Required value"),
    (
        {**EXTERNAL, "clusterIP": "10.0.0.1"},
        "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
    ),
    (
        {**EXTERNAL, "ipFamilies": ["IPv4"]},
        "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
    ),
    (
        {**EXTERNAL, "ipFamilyPolicy": "SingleStack"},
        "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services",
    ),
    (
        {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]},
        'spec.clusterIPs: Invalid value: ["10.0.0.2"]: first value must match `clusterIP`',
    ),
    (
        {"clusterIPs": ["10.0.0.2"]},
        'spec.clusterIPs: Invalid value: ["10.0.0.2"]: must be empty when `clusterIP` is not specified',
    ),
    (
        {"clusterIP": "None", "clusterIPs": ["None", "10.0.0.2"]},
        'spec.clusterIPs: Invalid value: ["None","10.0.0.2"]: \'None\' must be the first and only value',
    ),
    (
        {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]},
        'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each '
        "IP family",
    ),
    (
        {"clusterIP": "10.0.0", "ipFamilies": ["IPv6"]},
        'spec.clusterIPs[0]: Invalid value: "10.0.0": must be a valid IP address, (e.g. 10.9.8.7 or '
        "2001:db8::ffff)",
    ),
    (
        {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv6"]},
        'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by '
        "`ipFamilies[0]`",
    ),
    (
        {"clusterIP": "fd00::1", "ipFamilies": ["IPv4"]},
        'spec.clusterIPs[0]: Invalid value: "fd00::1": expected an IPv4 value as indicated by '
        "`ipFamilies[0]`",
    ),
    (
        {"ipFamilies": ["IPv5"]},
        'spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"',
    ),
    ({"ipFamilies": ["IPv4", "IPv4"]}, 'spec.ipFamilies[1]: Duplicate value: "IPv4"'),
    (
        {"ipFamilyPolicy": "Both"},
        'spec.ipFamilyPolicy: Unsupported value: "Both": supported values: "PreferDualStack", '
        '"RequireDualStack", "SingleStack"',
    ),
    ({"loadBalancerSourceRanges": ["10.0.0.0/8"]}, f"spec.LoadBalancerSourceRanges: {ONLY_BALANCERS}"),
    (
        {**BALANCER, "loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.0"]},
        f'spec.LoadBalancerSourceRanges[1]: Invalid value: "10.0.0.0": {NO_CIDR}',
    ),
    ({"annotations": {RANGES: ""}}, f"metadata.annotations[{RANGES}]: {ONLY_BALANCERS}"),
    (
        {**BALANCER, "annotations": {RANGES: "10.0.0.0/8, foo"}},
        f'metadata.annotations[{RANGES}]: Invalid value: "foo": {NO_CIDR}',
    ),
    ({"allocateLoadBalancerNodePorts": True}, f"spec.allocateLoadBalancerNodePorts: {ONLY_BALANCERS}"),
    ({"loadBalancerClass": "a"}, f"spec.loadBalancerClass: {ONLY_BALANCERS}"),
    (
        {"externalTrafficPolicy": "Local"},
        'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible '
        "services",
    ),
    (
        {"type": "NodePort", "externalTrafficPolicy": "Odd"},
        'spec.externalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"',
    ),
    (
        {"type": "NodePort", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30500},
        "spec.healthCheckNodePort: Invalid value: 30500: may only be set when `type` is 'LoadBalancer' and "
        "`externalTrafficPolicy` is 'Local'",
    ),
    (
        {**BALANCER, "externalTrafficPolicy": "Local", "healthCheckNodePort": 70000},
        "spec.healthCheckNodePort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
    (
        {"internalTrafficPolicy": "Odd"},
        'spec.internalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"',
    ),
    (
        {"trafficDistribution": "Far"},
        'spec.trafficDistribution: Unsupported value: "Far": supported values: "PreferClose", '
        '"PreferSameZone", "PreferSameNode"',
    ),
    (
        {"annotations": {HINTS: "auto", MODE: "off"}},
        f'metadata.annotations[{MODE}]: Invalid value: "off": must match annotations[{HINTS}] when both are '
        "specified",
    ),
]


@pytest.mark.parametrize(("spec", "fault"), REFUSED)
def test_what_is_refused(make_service: MakeService, spec: dict[str, Any], fault: str) -> None:
    found = [f"{cause.field}: {cause.message}" for cause in Services().validate(make_service(**spec))]
    assert found == [fault]


FORBIDDEN_CHANGES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (
        {"clusterIP": "10.0.0.1"},
        {"clusterIP": "10.0.0.2"},
        ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'],
    ),
    (
        {"clusterIP": "None"},
        {"clusterIP": "10.0.0.2"},
        ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'],
    ),
    (
        {"clusterIP": "10.0.0.1"},
        {},
        ["spec.clusterIPs[0]: Invalid value: []: primary clusterIP can not be unset"],
    ),
    (
        {"ipFamilies": ["IPv4"]},
        {"ipFamilies": ["IPv6"]},
        ['spec.ipFamilies[0]: Invalid value: ["IPv6"]: may not change once set'],
    ),
    (
        {"ipFamilies": ["IPv4", "IPv6"]},
        {"ipFamilies": ["IPv6"]},
        [
            "spec.ipFamilies[0]: Invalid value: []: may not change once set",
            "spec.ipFamilyPolicy: Invalid value: null: must be set to 'SingleStack' when releasing the "
            "secondary ipFamily",
        ],
    ),
    (
        {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]},
        {"clusterIP": "10.0.0.1"},
        [
            "spec.ipFamilyPolicy: Invalid value: null: must be set to 'SingleStack' when releasing the "
            "secondary clusterIP"
        ],
    ),
    (
        {**BALANCER, "loadBalancerClass": "a"},
        {**BALANCER, "loadBalancerClass": "b"},
        ['spec.loadBalancerClass: Invalid value: "b": may not change once set'],
    ),
    (
        {**BALANCER, "loadBalancerClass": "a"},
        BALANCER,
        ["spec.loadBalancerClass: Invalid value: null: may not change once set"],
    ),
]


@pytest.mark.parametrize(("before", "after", "faults"), FORBIDDEN_CHANGES)
def test_what_may_not_change(
    make_service: MakeService, before: dict[str, Any], after: dict[str, Any], faults: list[str]
) -> None:
    causes = Services().validate_update(make_service(**after), make_service(**before))
    assert [f"{cause.field}: {cause.message}" for cause in causes] == faults


def test_what_may_change(make_service: MakeService) -> None:
    for before, after in (
        ({"clusterIP": "None"}, {"clusterIP": "None", "ipFamilies": ["IPv6"]}),
        ({"clusterIP": "10.0.0.1"}, EXTERNAL),
        (EXTERNAL, {"clusterIP": "10.0.0.1"}),
        ({"clusterIP": "10.0.0.1"}, {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]}),
        ({}, {**BALANCER, "loadBalancerClass": "a"}),
    ):
        assert Services().validate_update(make_service(**after), make_service(**before)) == []


def test_ranges_of_before_may_stay(make_service: MakeService) -> None:
    before = make_service(**BALANCER, loadBalancerSourceRanges=["10.0.0.1/8 "])
    kept = make_service(**BALANCER, loadBalancerSourceRanges=["10.0.0.1/8", "10.0.0.2/8"])
    faults = [cause.field for cause in Services().validate_changed(kept, before)]
    assert faults == ["spec.LoadBalancerSourceRanges[1]"]


INGRESS: list[tuple[dict[str, Any], list[str]]] = [
    ({"ip": "1.2.3.4"}, []),
    ({"ip": "1.2.3.4", "ipMode": "Proxy", "ports": [{"port": 80, "protocol": "TCP"}]}, []),
    ({"hostname": "a.b"}, []),
    (
        {"ip": "1.2.3", "ipMode": "VIP"},
        ['ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ),
    ({"ip": "01.2.3.4"}, ['ip: Invalid value: "01.2.3.4": must not have leading 0s']),
    (
        {"ip": "1.2.3.4", "ipMode": "Odd"},
        ['ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"'],
    ),
    ({"ipMode": "VIP", "hostname": "a.b"}, ["ipMode: Forbidden: may not be specified when `ip` is not set"]),
    ({"hostname": "1.2.3.4"}, ['hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address']),
    (
        {"hostname": "a_b"},
        [
            'hostname: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case '
            "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'example.com', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ],
    ),
]


@pytest.mark.parametrize(("ingress", "faults"), INGRESS)
async def test_where_a_load_balancer_says_it_is(
    api: Conversation, ingress: dict[str, Any], faults: list[str]
) -> None:
    services = "/api/v1/namespaces/default/services"
    spec = {"ports": [{"port": 80}], **BALANCER}
    assert (await api.post(services, {"metadata": {"name": "s"}, "spec": spec})).status == 201
    status = {"status": {"loadBalancer": {"ingress": [ingress]}}}
    answer = await api.patch(f"{services}/s/status", status)
    causes = answer.body.get("details", {}).get("causes", [])
    path = "status.loadBalancer.ingress[0]."
    assert [f"{cause['field']}: {cause['message']}" for cause in causes] == [path + one for one in faults]
    if not faults and "ip" in ingress:
        assert answer.body["status"]["loadBalancer"]["ingress"][0]["ipMode"] == ingress.get("ipMode", "VIP")


async def test_nothing_but_a_load_balancer_is_reached_by_one(api: Conversation) -> None:
    services = "/api/v1/namespaces/default/services"
    await api.post(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    status = {"status": {"loadBalancer": {"ingress": [{"hostname": "a.b"}]}}}
    answer = await api.patch(f"{services}/s/status", status)
    assert answer.message == (
        'Service "s" is invalid: status.loadBalancer.ingress: Forbidden: '
        "may only be used when `spec.type` is 'LoadBalancer'"
    )
