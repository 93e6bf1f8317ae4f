"""The smaller plugins that are off unless `--enable-admission-plugins` names them.

NamespaceAutoProvision makes the namespace of a new object, and NamespaceExists has nothing written without
one. LimitPodHardAntiAffinityTopology lets pods keep others off their own node alone.
ExtendedResourceToleration lets pods onto the nodes that are kept for the resources that they ask for.
PodNodeSelector holds the pods of a namespace to the nodes that its annotation selects, or its configuration.
AlwaysDeny (DenyEverything) refuses every change.
OwnerReferencesPermissionEnforcement: who may not delete an object gives it no owner, and who may not set the
finalizers of an owner does not hold up its deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import ANY, Attributes, Handles, May, Objects
from podling.apiserver.authz.authorizers import Decision
from podling.apiserver.request.request import RequestInfo
from podling.apiserver.rules.container.resources import is_extended
from podling.model import names
from podling.model.errors import StatusError, not_found
from podling.model.scheme import by_kind
from podling.model.types.core import Namespace
from podling.model.types.meta import ObjectMeta, OwnerReference
from podling.model.types.pod import Toleration

HOSTNAME = "kubernetes.io/hostname"
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
EVERYWHERE = "clusterDefaultNodeSelector"
"""In the configuration of PodNodeSelector, among the namespaces."""


class NamespaceAutoProvision:
    handles: ClassVar[Handles] = {ANY: ("CREATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        name = attributes.namespace
        if not name or not attributes.resource.namespaced or attributes.dry_run:
            return
        if self._objects.find(Namespace, "", name) is not None:
            return
        if faults := names.dns1123_label(name):
            why = (
                f'Namespace "{name}" is invalid: metadata.name: Invalid value: "{name}": {"; ".join(faults)}'
            )
            raise attributes.forbidden(why)
        try:
            await self._objects.create(Namespace(metadata=ObjectMeta(name=name)))
        except StatusError as error:
            # Another request was first.
            if error.reason != "AlreadyExists":
                raise attributes.forbidden(error.message) from error


class NamespaceExists:
    handles: ClassVar[Handles] = {ANY: ("CREATE", "UPDATE", "DELETE")}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 404."""
        name = attributes.namespace
        if name and attributes.resource.namespaced and self._objects.find(Namespace, "", name) is None:
            raise not_found("namespaces", name)


class LimitPodHardAntiAffinityTopology:
    handles: ClassVar[Handles] = {"pods": ("CREATE", "UPDATE")}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        affinity = new.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None:
            return
        for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
            if term.topology_key != HOSTNAME:
                raise attributes.forbidden(
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {term.topology_key} "
                    f"but only key {HOSTNAME} is allowed"
                )


class ExtendedResourceToleration:
    handles: ClassVar[Handles] = {"pods": ("CREATE", "UPDATE")}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        spec = new.spec
        asked = {
            name
            for container in (*spec.containers, *spec.init_containers)
            for name in container.resources.requests
            if is_extended(name)
        }
        added = [Toleration(key=name, operator="Exists", effect="NoSchedule") for name in sorted(asked)]
        spec.tolerations = [*spec.tolerations, *(one for one in added if one not in spec.tolerations)]


class DenyEverything:
    handles: ClassVar[Handles] = {ANY: ("CREATE", "UPDATE", "DELETE", "CONNECT")}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        raise attributes.forbidden("admission control is denying all modifications")


class PodNodeSelector:
    handles: ClassVar[Handles] = {"pods": ("CREATE",)}

    def __init__(self, objects: Objects, configured: Mapping[str, str]) -> None:
        self._objects, self._configured = objects, configured

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403, 500 for what is no selector."""
        wanted = self._wanted(attributes, new)
        new.spec.node_selector = {**new.spec.node_selector, **wanted}
        self.judge(attributes, new)

    def judge(self, attributes: Attributes, pod: Any) -> None:
        self._wanted(attributes, pod)
        allowed = selector(self._configured.get(attributes.namespace, ""))
        if allowed and not pod.spec.node_selector.items() <= allowed.items():
            raise attributes.forbidden("pod node label selector labels conflict with its namespace whitelist")

    def _wanted(self, attributes: Attributes, pod: Any) -> Mapping[str, str]:
        namespace = self._objects.find(Namespace, "", attributes.namespace)
        said = namespace.metadata.annotations.get(SELECTOR) if namespace is not None else None
        wanted = selector(self._configured.get(EVERYWHERE, "") if said is None else said)
        if any(pod.spec.node_selector.get(key, value) != value for key, value in wanted.items()):
            raise attributes.forbidden(
                "pod node label selector conflicts with its namespace node label selector"
            )
        return wanted


class PodNodeSelectorCheck:
    """The same, of the pod as it is stored."""

    handles: ClassVar[Handles] = PodNodeSelector.handles

    def __init__(self, plugin: PodNodeSelector) -> None:
        self._plugin = plugin

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        self._plugin.judge(attributes, new)


def selector(text: str) -> dict[str, str]:
    """Labels by name. Raises StatusError 500."""
    found = {}
    for part in text.split(",") if text else ():
        pair = part.split("=")
        if len(pair) != 2:
            raise StatusError(500, "", f"invalid selector: [{' '.join(pair)}]")
        key, value = pair[0].strip(), pair[1].strip()
        judged = (("<nil>", key, names.qualified_name), (f"[{key}]", value, names.label_value))
        for where, one, faults_of in judged:
            if faults := faults_of(one):
                raise StatusError(500, "", f'{where}: Invalid value: "{one}": {"; ".join(faults)}')
        found[key] = value
    return found


class OwnerReferencesPermissionEnforcement:
    handles: ClassVar[Handles] = {ANY: ("CREATE", "UPDATE")}

    def __init__(self, may: May) -> None:
        self._may = may

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        before = old.metadata.owner_references if old is not None else []
        owners: list[OwnerReference] = new.metadata.owner_references
        if owners == before:
            return
        if old is not None:
            why = "cannot set an ownerRef on a resource you can't delete"
            self._ask(attributes, "delete", attributes.resource, "", attributes.name, why)
        blocking = {one.uid for one in before if one.block_owner_deletion}
        for owner in owners:
            if not owner.block_owner_deletion or owner.uid in blocking:
                continue
            resource = by_kind(owner.api_version, owner.kind)
            if resource is None:
                raise attributes.forbidden(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for "
                    f"APIVersion {owner.api_version} Kind {owner.kind}: no matches for kind "
                    f'"{owner.kind}" in version "{owner.api_version}"'
                )
            why = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
                "finalizers on"
            )
            self._ask(attributes, "update", resource, "finalizers", owner.name, why)

    def _ask(self, attributes: Attributes, verb: str, of: Any, subresource: str, name: str, why: str) -> None:
        namespace = attributes.namespace if of.namespaced else ""
        asked = RequestInfo(
            verb, "", True, of.group, of.version, namespace, of.plural, subresource=subresource, name=name
        )
        said = self._may(attributes.user, asked)
        if said.decision is not Decision.ALLOW:
            raise attributes.forbidden(f"{why}: {said.reason}, {said.error or '<nil>'}")
