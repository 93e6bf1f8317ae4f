"""Which writes a webhook or policy is about (R-SYS-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from podling.apiserver.admission.forms import Form, forms_of
from podling.apiserver.admission.matching import EVERYTHING_RULE, compiled, is_asked_about
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError, not_found
from podling.model.types.admissionregistration import NamedRuleWithOperations
from podling.model.types.meta import LabelSelector

LABELS = {"default": {"team": "a"}}


class Request(NamedTuple):
    forms: Sequence[Form]
    options: None = None
    warnings: list[str] = []
    annotations: dict[str, str] = {}


def write(
    plural: str,
    operation: Operation = "CREATE",
    *,
    subresource: str = "",
    namespace: str = "default",
    name: str = "x",
    group: str = "",
    version: str = "v1",
) -> Attributes:
    kind = next(
        one for one in KINDS
        if (one.resource.group, one.resource.version, one.resource.plural) == (group, version, plural)
    )  # fmt: skip
    below = kind.subresources[subresource] if subresource else None
    request = Request(forms_of(kind, KINDS, below))
    user = User("me")
    return Attributes(operation, kind.resource, subresource, namespace, name, user, plural, request)


def labels(name: str) -> Mapping[str, str]:
    if name not in LABELS:
        raise not_found("namespaces", name)
    return LABELS[name]


def rule(**fields: Any) -> NamedRuleWithOperations:
    whole = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], **fields}
    return from_data(whole, NamedRuleWithOperations)


def matched(attributes: Attributes, *rules: Any, policy: str = "Equivalent", **parts: Any) -> str:
    """The version and kind in which it is shown; empty if it is not matched."""
    stored = attributes.resource.type()
    stored.metadata.labels = {"app": "web"}
    match = compiled(
        rules or (rule(),),
        from_data(parts["namespaces"], LabelSelector) if "namespaces" in parts else None,
        from_data(parts["objects"], LabelSelector) if "objects" in parts else None,
        policy,
        parts.get("excluded", ()),
    )
    old = stored if attributes.operation in ("UPDATE", "DELETE") else None
    form = match.form(attributes, None if attributes.operation == "DELETE" else stored, old, labels)
    return f"{form.api_version} {form.kind}" if form else ""


@pytest.mark.parametrize(
    ("fields", "is_matched"),
    [
        ({}, True),
        ({"operations": ["UPDATE", "CREATE"]}, True),
        ({"operations": ["UPDATE"]}, False),
        ({"apiGroups": [""]}, True),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v1"]}, True),
        ({"apiVersions": ["v2"]}, False),
        ({"resources": ["pods"]}, True),
        ({"resources": ["services", "pods"]}, True),
        ({"resources": ["pods/*"]}, True),
        ({"resources": ["*/*"]}, True),
        ({"resources": ["pods/status"]}, False),
        ({"resources": ["*/status"]}, False),
        ({"resources": ["services"]}, False),
        ({"scope": "*"}, True),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"resourceNames": ["x"]}, True),
        ({"resourceNames": ["y"]}, False),
    ],
)
def test_each_part_of_a_rule(fields: dict[str, Any], is_matched: bool) -> None:
    assert bool(matched(write("pods"), rule(**fields))) == is_matched


@pytest.mark.parametrize(
    ("resources", "is_matched"),
    [("pods", False), ("*", False), ("pods/*", True), ("*/*", True), ("*/status", True), ("pods/log", False)],
)
def test_a_subresource_is_only_meant_by_its_name_or_all(resources: str, is_matched: bool) -> None:
    attributes = write("pods", "UPDATE", subresource="status")
    assert bool(matched(attributes, rule(resources=[resources]))) == is_matched


def test_a_namespace_is_of_the_cluster_though_it_is_in_itself() -> None:
    attributes = write("namespaces", "UPDATE", namespace="", name="default")
    assert matched(attributes, rule(scope="Cluster"))
    assert not matched(attributes, rule(scope="Namespaced"))
    assert matched(attributes, namespaces={"matchLabels": {"app": "web"}}), "the labels it is to have"
    assert not matched(attributes, namespaces={"matchLabels": {"team": "a"}})
    going = write("namespaces", "DELETE", namespace="", name="default")
    assert matched(going, namespaces={"matchLabels": {"team": "a"}}), "the labels it has"


def test_what_is_in_no_namespace_is_selected_by_every_namespace_selector() -> None:
    assert matched(write("nodes", namespace=""), namespaces={"matchLabels": {"team": "z"}})


def test_selectors() -> None:
    assert matched(write("pods"), namespaces={"matchLabels": {"team": "a"}})
    assert not matched(write("pods"), namespaces={"matchLabels": {"team": "b"}})
    assert matched(write("pods"), objects={"matchLabels": {"app": "web"}})
    assert not matched(
        write("pods"), objects={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    )
    assert matched(write("pods", "DELETE"), objects={"matchLabels": {"app": "web"}}), "the old object"


def test_an_unknown_namespace_is_only_told_of_where_the_rest_matches() -> None:
    attributes = write("pods", namespace="gone")
    selected = {"matchLabels": {"team": "a"}}
    assert not matched(attributes, rule(resources=["services"]), namespaces=selected)
    with pytest.raises(StatusError, match='namespaces "gone" not found'):
        matched(attributes, namespaces=selected)


def test_excluded() -> None:
    assert not matched(write("pods"), excluded=[rule(resources=["pods"])])
    assert matched(write("pods"), excluded=[rule(resources=["services"])])


def test_an_equivalent_version_is_shown_in_the_version_of_the_rule() -> None:
    asked = write("horizontalpodautoscalers", group="autoscaling", version="v1")
    second = rule(apiGroups=["autoscaling"], apiVersions=["v2"])
    assert matched(asked, second) == "autoscaling/v2 HorizontalPodAutoscaler"
    assert matched(asked, second, rule()) == "autoscaling/v1 HorizontalPodAutoscaler", "its own comes first"
    assert not matched(asked, second, policy="Exact")


def test_everything() -> None:
    assert matched(write("pods", "UPDATE", subresource="status"), EVERYTHING_RULE)


def test_nobody_is_asked_about_what_configures_who_is_asked() -> None:
    assert is_asked_about(write("pods"))
    for plural in (one.resource.plural for one in KINDS if "admissionregistration" in one.resource.group):
        assert not is_asked_about(write(plural, group="admissionregistration.k8s.io", namespace=""))
