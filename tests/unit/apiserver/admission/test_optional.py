"""R-SYS-4: the plugins that are off unless they are chosen."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.admission.optional import (
    DenyEverything,
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    NamespaceAutoProvision,
    NamespaceExists,
    OwnerReferencesPermissionEnforcement,
    PodNodeSelector,
    PodNodeSelectorCheck,
    selector,
)
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.authz.authorizers import ALLOW, NO_OPINION, Opinion
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.core import ConfigMap, Namespace
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from unit.apiserver.admission.sent import Itself

HELD = "scheduler.alpha.kubernetes.io/node-selector"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "o", "uid": "u"}


class Objects:
    """Namespaces alone."""

    all: Any
    changes: Any
    change: Any

    def __init__(self, **annotations: str) -> None:
        self.made = {name: namespace(name, {HELD: text}) for name, text in annotations.items()}

    def find(self, type: type[KubeObject], namespace: str, name: str) -> Any:
        return self.made.get(name)

    async def create(self, obj: Any) -> None:
        self.made[obj.metadata.name] = obj


def namespace(name: str, annotations: dict[str, str]) -> Namespace:
    return from_data({"metadata": {"name": name, "annotations": annotations}}, Namespace)


def asking(type_: type[KubeObject], operation: Operation = "CREATE", *, dry_run: bool = False) -> Attributes:
    resource, user = resource_of(type_), User("ann")
    return Attributes(operation, resource, "", "ns", "x", user, resource.plural, Itself(), dry_run=dry_run)


async def told(plugin: Any, attributes: Attributes, new: Any = None, old: Any = None) -> str:
    """Why it is refused; empty if it is not."""
    try:
        await plugin.admit(attributes, new, old)
    except StatusError as refused:
        return refused.message
    return ""


def pod(**spec: Any) -> Pod:
    container = {"name": "c", "image": "i", "resources": spec.pop("resources", {})}
    return from_data({"spec": {"containers": [container], **spec}}, Pod)


async def test_a_namespace_that_is_missing_is_made_or_missed() -> None:
    objects: Any = Objects()
    assert await told(NamespaceExists(objects), asking(ConfigMap, "DELETE")) == 'namespaces "ns" not found'
    await told(NamespaceAutoProvision(objects), asking(ConfigMap, dry_run=True))
    assert not objects.made
    await told(NamespaceAutoProvision(objects), asking(ConfigMap))
    made = objects.made["ns"]
    assert await told(NamespaceExists(objects), asking(ConfigMap)) == ""
    await told(NamespaceAutoProvision(objects), asking(ConfigMap))
    assert objects.made["ns"] is made


async def test_others_are_kept_off_the_own_node_alone() -> None:
    def new(key: str) -> Pod:
        terms = [{"topologyKey": key}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        return pod(affinity={"podAntiAffinity": required})

    plugin = LimitPodHardAntiAffinityTopology()
    assert await told(plugin, asking(Pod), new("kubernetes.io/hostname")) == ""
    assert "has TopologyKey zone but only key" in await told(plugin, asking(Pod), new("zone"))


async def test_what_is_asked_for_is_tolerated_once() -> None:
    requests = {"cpu": "1", "example.com/b": "1", "example.com/a": "1"}
    own = {"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule"}
    new = pod(resources={"requests": requests}, tolerations=[own])
    for _ in range(2):
        await told(ExtendedResourceToleration(), asking(Pod), new)
        assert [one.key for one in new.spec.tolerations] == ["example.com/a", "example.com/b"]


async def test_the_nodes_of_a_namespace() -> None:
    plugin = PodNodeSelector(held := Objects(ns="a=b, c=d"), {"clusterDefaultNodeSelector": "not=here"})
    new = pod(nodeSelector={"a": "b", "e": "f"})
    assert await told(plugin, asking(Pod), new) == ""
    assert new.spec.node_selector == {"a": "b", "c": "d", "e": "f"}
    assert "conflicts" in await told(plugin, asking(Pod), pod(nodeSelector={"c": "x"}))
    held.made["ns"] = namespace("ns", {})
    configured = PodNodeSelector(held, {"clusterDefaultNodeSelector": "g=h", "ns": "g=h,i=j"})
    assert await told(configured, asking(Pod), new := pod(nodeSelector={"i": "j"})) == ""
    assert new.spec.node_selector == {"g": "h", "i": "j"}
    why = "pod node label selector labels conflict with its namespace whitelist"
    assert why in await told(configured, asking(Pod), pod(nodeSelector={"i": "x"}))


async def test_what_becomes_of_a_pod_afterwards_is_judged_too() -> None:
    """A webhook may have changed it."""
    plugin = PodNodeSelector(Objects(ns="a=b"), {})
    assert "conflicts" in await told(PodNodeSelectorCheck(plugin), asking(Pod), pod(nodeSelector={"a": "x"}))
    assert await told(PodNodeSelectorCheck(plugin), asking(Pod), pod(nodeSelector={"a": "b"})) == ""


async def test_everything_may_be_denied() -> None:
    why = 'configmaps "x" is forbidden: admission control is denying all modifications'
    assert await told(DenyEverything(), asking(ConfigMap)) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "invalid selector: [a]"),
        ("a==b", "invalid selector: [a  b]"),
        ("=", "<nil>: "),
        ("a=-", "[a]: "),
    ],
)
def test_what_is_no_selector_is_refused(text: str, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        selector(text)
    assert refused.value.code == 500
    assert refused.value.message.startswith(why)


def config_map(**more: Any) -> ConfigMap:
    owners = [{**OWNER, **more}] if more else []
    return from_data({"metadata": {"name": "x", "ownerReferences": owners}}, ConfigMap)


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        (None, {"uid": "u"}, []),
        (None, {"blockOwnerDeletion": True}, ["update jobs/finalizers o"]),
        ({}, {}, []),
        ({}, {"uid": "u"}, ["delete configmaps x"]),
        ({"uid": "u"}, {"blockOwnerDeletion": True}, ["delete configmaps x", "update jobs/finalizers o"]),
        ({"blockOwnerDeletion": True}, {"blockOwnerDeletion": True, "name": "p"}, ["delete configmaps x"]),
    ],
)
async def test_owners_take_rights(old: dict[str, Any] | None, new: dict[str, Any], asked: list[str]) -> None:
    questions: list[str] = []

    def may(user: User, info: RequestInfo) -> Opinion:
        resource = "/".join(filter(None, [info.resource, info.subresource]))
        questions.append(f"{info.verb} {resource} {info.name}")
        return ALLOW

    before = None if old is None else config_map(**old)
    operation: Operation = "CREATE" if old is None else "UPDATE"
    plugin = OwnerReferencesPermissionEnforcement(may)
    assert await told(plugin, asking(ConfigMap, operation), config_map(**new), before) == ""
    assert questions == asked


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"blockOwnerDeletion": True}, "cannot set blockOwnerDeletion if an ownerReference refers to"),
        ({"blockOwnerDeletion": True, "kind": "Nope"}, 'no matches for kind "Nope" in version "batch/v1"'),
    ],
)
async def test_without_them_it_is_refused(more: dict[str, Any], why: str) -> None:
    plugin = OwnerReferencesPermissionEnforcement(lambda user, info: NO_OPINION)
    assert why in await told(plugin, asking(ConfigMap), config_map(**more))
