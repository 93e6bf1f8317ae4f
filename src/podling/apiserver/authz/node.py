"""What the kubelets of nodes may do, as kube-apiserver's Node authorizer decides it.

Whoever is named `system:node:NAME` and is in the group `system:nodes` may read what the pods of that node
refer to, its own objects, and what the role `system:node` allows of everything else. What it may write is
told by the NodeRestriction plugin, which sees the objects.

Kubernetes lets no node remove its own Node. Here `podling:node:NAME` of `podling:nodes` may, which is the
machine that has joined and leaves (docs/decisions/108); what else it may, roles say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from podling.apiserver.authz.authorizers import ALLOW, NO_OPINION, Decision, ListedRules, Opinion
from podling.apiserver.authz.rbac import CompiledRole, Name
from podling.apiserver.authz.roles.rules import CORE, may
from podling.apiserver.authz.roles.system_roles import RULES
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.quoting import quoted
from podling.model.rules.certificates import JOINED_NODE, JOINED_NODES, NODE, NODES
from podling.model.rules.references import (
    DRIVERS_WITH_SECRETS,
    config_maps_of,
    device_claims_of,
    secrets_of,
    volume_claims_of,
)
from podling.model.rules.status import is_mirror
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeSpec
from podling.model.types.pod import Pod
from podling.model.types.resource import ResourceSlice
from podling.model.types.storage import VolumeAttachment

Object = tuple[str, str, str]
"""Resource, namespace and name."""

LEASE_NAMESPACE = "kube-node-lease"
UNLISTED = ListedRules([], ["node authorizer does not support user rule resolution"], incomplete=True)
NOTHING = ListedRules([], [])
READS, WRITES = ("get", "list", "watch"), ("update", "patch")
OWN = ("get", "create", "update", "patch", "delete")

PODS, SECRETS, CONFIG_MAPS, ACCOUNTS = "pods", "secrets", "configmaps", "serviceaccounts"
CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
DEVICE_CLAIMS, SLICES, ATTACHMENTS = "resourceclaims", "resourceslices", "volumeattachments"

SOURCES: dict[type[Any], str] = {
    Pod: PODS,
    PersistentVolume: VOLUMES,
    VolumeAttachment: ATTACHMENTS,
    ResourceSlice: SLICES,
}
"""The types whose objects make the graph."""


class NodeGraph:
    """Which objects each node needs, as the pods, volumes and devices of the cluster say.

    A pod is its node's; so are the secrets, config maps, claims and accounts that it refers to. A volume is
    of the nodes that its claim is of, and with it the secrets by which a node mounts it. The graph hears of
    each change, counts in how many ways an object is a node's, and answers by a look-up. It is as large as
    the references of all bound pods together.
    """

    def __init__(self) -> None:
        self._nodes: dict[Object, Counter[str]] = {}
        """Object → node → in how many ways it is the node's; never none."""
        self._edges: dict[Object, tuple[str, frozenset[Object]]] = {}
        """Pod, attachment or slice → its node, and what it makes the node's."""
        self._volumes: dict[str, tuple[Object, frozenset[Object]]] = {}
        """Volume → its claim, and what is of the nodes that the claim is of: itself and secrets."""
        self._of_claim: dict[Object, set[str]] = {}
        """Claim → the volumes that name it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeGraph) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """How many references it holds."""
        return sum(map(len, self._nodes.values()))

    def has(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether the object is one that the node needs."""
        nodes = self._nodes.get((resource, namespace, name))
        return nodes is not None and node in nodes

    def changed(self, key: Name, new: Any, type_: type[Any]) -> None:
        """`new` is the object of `key` as it is now, None if it is gone; `type_` is of SOURCES."""
        if type_ is PersistentVolume:
            self._change_volume(key[1], new)
            return
        at = (SOURCES[type_], *key)
        edge = None if new is None else _edge(at, new)
        old = self._edges.get(at)
        if edge == old:
            return
        if old is not None:
            del self._edges[at]
            self._count(*old, -1)
        if edge is not None:
            self._edges[at] = edge
            self._count(*edge, 1)

    def _count(self, node: str, objects: frozenset[Object], by: int) -> None:
        for one in objects:
            nodes = self._nodes.setdefault(one, Counter())
            before = nodes[node]
            nodes[node] = before + by
            if before + by == 0:
                del nodes[node]
                if not nodes:
                    del self._nodes[one]
            # The claim became the node's, or no longer is: so do its volumes.
            if one[0] == CLAIMS and 0 in (before, before + by):
                for volume in self._of_claim.get(one, ()):
                    self._count(node, self._volumes[volume][1], by)

    def _change_volume(self, name: str, new: PersistentVolume | None) -> None:
        edge = None if new is None else _volume_edge(name, new.spec)
        old = self._volumes.get(name)
        if edge == old:
            return
        if old is not None:
            claim, objects = old
            for node in self._nodes.get(claim, ()):
                self._count(node, objects, -1)
            del self._volumes[name]
            self._of_claim[claim].discard(name)
            if not self._of_claim[claim]:
                del self._of_claim[claim]
        if edge is not None:
            claim, objects = edge
            self._volumes[name] = edge
            self._of_claim.setdefault(claim, set()).add(name)
            for node in self._nodes.get(claim, ()):
                self._count(node, objects, 1)


def is_node(user: User) -> bool:
    return user.name.startswith(NODE) and NODES in user.groups


def node_name(user: User) -> str:
    """Of a user that `is_node`; may be empty."""
    return user.name.removeprefix(NODE)


def leaving(user: User) -> str:
    """The node that may be removed by the machine that is it; empty for other users."""
    is_joined = user.name.startswith(JOINED_NODE) and JOINED_NODES in user.groups
    return user.name.removeprefix(JOINED_NODE) if is_joined else ""


class NodeAuthorizer:
    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._role = CompiledRole(RULES["system:node"])
        decide: dict[tuple[str, str], Callable[[str, RequestInfo], Opinion]] = {
            ("", SECRETS): self._read,
            ("", CONFIG_MAPS): self._read,
            ("", CLAIMS): self._claim,
            ("", VOLUMES): self._get,
            ("resource.k8s.io", DEVICE_CLAIMS): self._get,
            ("storage.k8s.io", ATTACHMENTS): self._get,
            ("", ACCOUNTS): self._account,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", SLICES): self._slice,
            ("", "nodes"): _node,
            ("", PODS): self._pod,
        }
        self._decide = decide

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        if not is_node(user):
            return ALLOW if _removes(info, leaving(user)) else NO_OPINION
        node = node_name(user)
        if not node:
            return _no(f"unknown node for user {quoted(user.name)}")
        if not info.is_resource_request:
            return NO_OPINION
        decide = self._decide.get((info.api_group, info.resource), self._by_role)
        return decide(node, info)

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        if is_node(user):
            return UNLISTED
        own = leaving(user)
        return ListedRules([may("delete", CORE, "nodes", own)], []) if own else NOTHING

    def _by_role(self, node: str, info: RequestInfo) -> Opinion:
        names = self._role.names(info.verb, info.api_group, info.resource, info.subresource)
        return ALLOW if any(not one or info.name in one for one in names) else NO_OPINION

    def _related(self, node: str, info: RequestInfo) -> Opinion:
        if not info.name:
            return _no("No Object name found")
        if self._graph.has(node, info.resource, info.namespace, info.name):
            return ALLOW
        return _no(f"no relationship found between node '{node}' and this object")

    def _read(self, node: str, info: RequestInfo) -> Opinion:
        if info.verb not in READS:
            return _no("can only read resources of this type")
        if info.subresource:
            return _no("cannot read subresource")
        if not info.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, info)

    def _get(self, node: str, info: RequestInfo) -> Opinion:
        if info.verb != "get":
            return _no("can only get individual resources of this type")
        return _no("cannot get subresource") if info.subresource else self._related(node, info)

    def _claim(self, node: str, info: RequestInfo) -> Opinion:
        if info.subresource != "status":
            return self._get(node, info)
        if info.verb not in WRITES:
            return _no("can only get/update/patch this type")
        return self._related(node, info)

    def _account(self, node: str, info: RequestInfo) -> Opinion:
        if info.verb == "get" and not info.subresource:
            return self._read(node, info)
        if info.verb != "create" or not info.name:
            return _no("can only create tokens for individual service accounts")
        if info.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, info)

    def _slice(self, node: str, info: RequestInfo) -> Opinion:
        if info.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match info.verb:
            case "create":
                return ALLOW
            case "get" | "update" | "patch" | "delete":
                return self._related(node, info)
            case "watch" | "list" | "deletecollection":
                if ("spec.nodeName", node) in info.selected:
                    return ALLOW
                return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, "
            "patch, delete, deletecollection"
        )

    def _pod(self, node: str, info: RequestInfo) -> Opinion:
        match info.subresource, info.verb:
            case "", "get":
                return self._related(node, info)
            case "", ("list" | "watch"):
                if ("spec.nodeName", node) in info.selected:
                    return ALLOW
                if info.name:
                    return self._related(node, info)
                return _no("can only list/watch pods with spec.nodeName field selector")
            case ("", ("create" | "delete")) | ("status", ("update" | "patch")) | ("eviction", "create"):
                return ALLOW
        return NO_OPINION


def _removes(info: RequestInfo, node: str) -> bool:
    """Whether it is the Node `node` that is to be deleted; no node has an empty name."""
    return (
        bool(node)
        and (info.verb, info.resource, info.subresource) == ("delete", "nodes", "")
        and (info.api_group, info.name) == (CORE, node)
    )


def _no(reason: str) -> Opinion:
    return Opinion(Decision.NO_OPINION, reason)


def _lease(node: str, info: RequestInfo) -> Opinion:
    if info.verb not in OWN:
        return _no("can only get, create, update, patch, or delete a node lease")
    if info.namespace != LEASE_NAMESPACE:
        return _no(f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
    # The name of what is created is not known yet.
    if info.verb != "create" and info.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return ALLOW


def _csi_node(node: str, info: RequestInfo) -> Opinion:
    if info.verb not in OWN:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if info.subresource:
        return _no("cannot authorize CSINode subresources")
    if info.verb != "create" and info.name != node:
        return _no("can only access CSINode with the same name as the requesting node")
    return ALLOW


def _node(node: str, info: RequestInfo) -> Opinion:
    match info.subresource, info.verb:
        case ("", ("create" | "update" | "patch")) | ("status", ("update" | "patch")):
            return ALLOW
        case "", ("get" | "list" | "watch"):
            if info.name == node:
                return ALLOW
            whom = f"'{info.name}'" if info.name else "all nodes"
            return _no(f"node '{node}' cannot read {whom}, only its own Node object")
    return NO_OPINION


def _edge(at: Object, new: Any) -> tuple[str, frozenset[Object]] | None:
    node = new.spec.node_name
    if not node:
        return None
    if not isinstance(new, Pod) or is_mirror(new):
        # What a mirror pod refers to is what its node wrote: it gives no right.
        return node, frozenset((at,))
    return node, frozenset((at, *_needed(new)))


def _needed(pod: Pod) -> Iterator[Object]:
    namespace = pod.metadata.namespace
    if pod.spec.service_account_name:
        yield ACCOUNTS, namespace, pod.spec.service_account_name
    for resource, names in (
        (SECRETS, secrets_of(pod)),
        (CONFIG_MAPS, config_maps_of(pod)),
        (CLAIMS, volume_claims_of(pod)),
        (DEVICE_CLAIMS, device_claims_of(pod)),
    ):
        for name in names:
            yield resource, namespace, name


def _volume_edge(name: str, spec: PersistentVolumeSpec) -> tuple[Object, frozenset[Object]] | None:
    if spec.claim_ref is None:
        return None
    claim = (CLAIMS, spec.claim_ref.namespace, spec.claim_ref.name)
    secrets = ((SECRETS, *one) for one in _secrets_of_volume(spec, spec.claim_ref.namespace))
    return claim, frozenset(((VOLUMES, "", name), *secrets))


def _secrets_of_volume(spec: PersistentVolumeSpec, namespace: str) -> Iterator[Name]:
    """Those that a kubelet reads. `namespace`: of the claim, for sources that name none."""
    if (azure := spec.azure_file) is not None:
        yield azure.secret_namespace or namespace, azure.secret_name
    for driver in DRIVERS_WITH_SECRETS:
        source = getattr(spec, driver)
        if source is not None and source.secret_ref is not None:
            yield source.secret_ref.namespace or namespace, source.secret_ref.name
    if (csi := spec.csi) is not None:
        for reference in (csi.node_publish_secret_ref, csi.node_stage_secret_ref, csi.node_expand_secret_ref):
            if reference is not None:
                yield reference.namespace, reference.name
