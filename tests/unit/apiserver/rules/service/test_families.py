"""R-SYS-1: the address families of a service in a cluster that has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.rules.service.addresses import settle_families
from podling.model.types.service import Service

MakeService = Callable[..., Service]

SELECTED = {"selector": {"a": "b"}}
HEADLESS = {"clusterIP": "None"}
NOT_DUAL = "this cluster is not configured for dual-stack services"

SETTLED: list[tuple[dict[str, Any], str | None, list[str]]] = [
    ({}, "SingleStack", ["IPv4"]),
    ({"ipFamilyPolicy": "PreferDualStack"}, "PreferDualStack", ["IPv4"]),
    ({"clusterIP": "10.96.0.1"}, "SingleStack", ["IPv4"]),
    ({**HEADLESS, **SELECTED}, "SingleStack", ["IPv4"]),
    (HEADLESS, "RequireDualStack", ["IPv4", "IPv6"]),
    ({**HEADLESS, "ipFamilies": ["IPv6"]}, "RequireDualStack", ["IPv6", "IPv4"]),
    ({**HEADLESS, "ipFamilyPolicy": "SingleStack"}, "SingleStack", ["IPv4"]),
    ({"type": "ExternalName"}, None, []),
]


@pytest.mark.parametrize(("spec", "policy", "families"), SETTLED)
def test_what_a_new_service_gets(
    make_service: MakeService, spec: dict[str, Any], policy: str | None, families: list[str]
) -> None:
    made = make_service(**spec).spec
    assert settle_families(made, None) == []
    assert (made.ip_family_policy, made.ip_families) == (policy, families)


BOTH = ["IPv4", "IPv6"]
SETTLED_OF_BOTH: list[tuple[dict[str, Any], str, list[str]]] = [
    ({}, "SingleStack", ["IPv4"]),
    ({"ipFamilyPolicy": "PreferDualStack"}, "PreferDualStack", BOTH),
    ({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]}, "RequireDualStack", ["IPv6", "IPv4"]),
    ({"ipFamilies": ["IPv6"]}, "SingleStack", ["IPv6"]),
    ({"clusterIP": "fd00::1"}, "SingleStack", ["IPv6"]),
    ({**HEADLESS, **SELECTED, "ipFamilyPolicy": "PreferDualStack"}, "PreferDualStack", BOTH),
]


@pytest.mark.parametrize(("spec", "policy", "families"), SETTLED_OF_BOTH)
def test_what_a_new_service_gets_of_both_families(
    make_service: MakeService, spec: dict[str, Any], policy: str, families: list[str]
) -> None:
    made = make_service(**spec).spec
    assert settle_families(made, None, BOTH) == []
    assert (made.ip_family_policy, made.ip_families) == (policy, families)


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"ipFamilyPolicy": "RequireDualStack"},
        [f'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": {NOT_DUAL}'],
    ),
    ({"ipFamilies": ["IPv6"]}, ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster']),
    (
        {"ipFamilies": ["IPv4", "IPv6"]},
        [
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
            "'PreferDualStack' when multiple IP families are specified"
        ],
    ),
    (
        {"clusterIP": "fd00::1"},
        ['spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster'],
    ),
    (
        {"ipFamilyPolicy": "Both"},
        [
            'spec.ipFamilyPolicy: Unsupported value: "Both": supported values: "PreferDualStack", '
            '"RequireDualStack", "SingleStack"'
        ],
    ),
    (
        {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]},
        [
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
            "'PreferDualStack' when multiple cluster IPs are specified",
            'spec.clusterIPs[1]: Invalid value: ["10.0.0.1","fd00::1"]: IPv6 is not configured on this '
            "cluster",
        ],
    ),
]


@pytest.mark.parametrize(("spec", "faults"), REFUSED)
def test_what_a_new_service_cannot_get(
    make_service: MakeService, spec: dict[str, Any], faults: list[str]
) -> None:
    causes = settle_families(make_service(**spec).spec, None)
    assert [f"{cause.field}: {cause.message}" for cause in causes] == faults


DUAL: dict[str, Any] = {
    "clusterIP": "10.96.0.1",
    "clusterIPs": ["10.96.0.1", "fd00::1"],
    "ipFamilies": ["IPv4", "IPv6"],
    "ipFamilyPolicy": "PreferDualStack",
}


def test_what_prefers_two_stays_as_it_is(make_service: MakeService) -> None:
    new, old = make_service(**DUAL).spec, make_service(**DUAL).spec
    assert settle_families(new, old) == [] and new == old


def test_to_want_one_family_gives_up_the_second(make_service: MakeService) -> None:
    new, old = make_service(**{**DUAL, "ipFamilyPolicy": "SingleStack"}).spec, make_service(**DUAL).spec
    assert settle_families(new, old) == []
    assert (new.cluster_ips, new.ip_families) == (["10.96.0.1"], ["IPv4"])


def test_the_second_is_not_given_up_by_the_way(make_service: MakeService) -> None:
    one = {**DUAL, "clusterIPs": ["10.96.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": None}
    new, old = make_service(**one).spec, make_service(**DUAL).spec
    assert [cause.message for cause in settle_families(new, old)] == [
        f"Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the secondary {what}"
        for what in ("cluster IP", "IP family")
    ]


def test_an_update_keeps_the_policy_and_the_family_of_the_address(make_service: MakeService) -> None:
    old = make_service(clusterIP="10.96.0.1", ipFamilies=["IPv4"], ipFamilyPolicy="PreferDualStack").spec
    new = make_service(clusterIP="10.96.0.1").spec
    assert settle_families(new, old) == []
    assert (new.ip_family_policy, new.ip_families) == ("PreferDualStack", ["IPv4"])
