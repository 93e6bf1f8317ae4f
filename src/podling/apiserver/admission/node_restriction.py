"""NodeRestriction: what the kubelet of a node may write, by what it writes.

The Node authorizer lets a node write its kind of object; which one, and what of it, is told here. Others than
nodes are not asked anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from cryptography import x509
from msgspec.structs import replace

from podling.apiserver.admission.plugin import Attributes, Handles, May
from podling.apiserver.authz.authorizers import Decision, settled
from podling.apiserver.authz.node import LEASE_NAMESPACE, is_node, node_name
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import RequestInfo
from podling.model.codec.quoting import quoted
from podling.model.errors import not_found
from podling.model.rules.certificates import (
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    NODE,
    attributes_of,
    read_request,
)
from podling.model.rules.references import config_maps_of, volume_claim_of
from podling.model.rules.status import MIRROR, is_mirror
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.core import TokenRequest
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.resource import ResourceSlice
from podling.model.types.storage import CSIDriver
from podling.model.types.volume import Volume

REQUESTS_TOKEN = "request-serviceaccounts-token-audience"
"""The verb of who may ask for tokens for an audience that is named in place of a resource."""
RESTRICTED, KUBELETS = "node-restriction.kubernetes.io", ("kubelet.kubernetes.io", "node.kubernetes.io")
KUBERNETES = ("kubernetes.io", "k8s.io")
KUBELET_LABELS = frozenset(
    f"{prefix}/{name}"
    for prefix, names in (
        ("kubernetes.io", ("arch", "hostname", "os")),
        ("beta.kubernetes.io", ("arch", "instance-type", "os")),
        ("failure-domain.beta.kubernetes.io", ("region", "zone")),
        ("topology.kubernetes.io", ("region", "zone")),
    )
    for name in names
)
"""Kubernetes' labels that a kubelet sets, besides those of KUBELETS."""
MIGRATED = {
    "aws_elastic_block_store": "ebs.csi.aws.com",
    "azure_disk": "disk.csi.azure.com",
    "azure_file": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gce_persistent_disk": "pd.csi.storage.gke.io",
    "portworx_volume": "pxd.portworx.com",
    "vsphere_volume": "csi.vsphere.vmware.com",
}
"""Sources of volumes → the CSI driver that serves them."""
OWN_LEASE = "can only access node lease with the same name as the requesting node"
OWN_CSI_NODE = "can only access CSINode with the same name as the requesting node"
OTHER_FIELDS = "is not allowed to update fields other than status.quantity and status.conditions"

Judge = Callable[[str, Attributes, Any, Any], str]
"""Why a node may not write this; empty if it may. Raises StatusError for what is not there."""


class NodeRestriction:
    handles: ClassVar[Handles] = {
        "pods": ("CREATE", "UPDATE", "DELETE"),
        "pods/status": ("UPDATE",),
        "pods/eviction": ("CREATE",),
        "pods/binding": ("CREATE",),
        "pods/ephemeralcontainers": ("UPDATE",),
        "pods/resize": ("UPDATE",),
        "nodes": ("CREATE", "UPDATE", "DELETE"),
        "nodes/status": ("UPDATE",),
        "persistentvolumeclaims": ("CREATE", "UPDATE", "DELETE"),
        "persistentvolumeclaims/status": ("UPDATE",),
        "serviceaccounts/token": ("CREATE",),
        "leases.coordination.k8s.io": ("CREATE", "UPDATE", "DELETE"),
        "csinodes.storage.k8s.io": ("CREATE", "UPDATE", "DELETE"),
        "resourceslices.resource.k8s.io": ("CREATE", "DELETE"),
        "certificatesigningrequests.certificates.k8s.io": ("CREATE",),
    }

    def __init__(self, find: Find, may: May) -> None:
        """`may`: the authorizers, for audiences that a node may ask tokens for."""
        self._find, self._may = find, may
        self._judges: dict[str, Judge] = {
            "pods": self._pod,
            "pods/status": _pod_status,
            "pods/eviction": self._eviction,
            "nodes": _node,
            "nodes/status": _node,
            "persistentvolumeclaims": lambda *_: "may only update PVC status",
            "persistentvolumeclaims/status": _claim_status,
            "serviceaccounts/token": self._token,
            "leases.coordination.k8s.io": _lease,
            "csinodes.storage.k8s.io": _csi_node,
            "resourceslices.resource.k8s.io": _slice,
            "certificatesigningrequests.certificates.k8s.io": _certificate,
        }

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403 or 404."""
        user = attributes.user
        if not is_node(user):
            return
        node = node_name(user)
        if not node:
            raise attributes.forbidden(f"could not determine node from user {quoted(user.name)}")
        judge = self._judges.get(attributes.target, _other_subresource)
        if why := await settled(lambda: judge(node, attributes, new, old)):
            raise attributes.forbidden(why)

    def _pod(self, node: str, attributes: Attributes, new: Any, old: Any) -> str:
        if attributes.operation == "CREATE":
            return self._mirror_pod(node, new)
        if attributes.operation == "DELETE":
            if not attributes.name:
                # One of many that are deleted: Kubernetes looks for a pod without a name, and passes over it.
                raise not_found("pod", "")
            own = old.spec.node_name == node
            return "" if own else f'node "{node}" can only delete pods with spec.nodeName set to itself'
        return f'unexpected operation "UPDATE", node "{node}" can only create and delete mirror pods'

    def _mirror_pod(self, node: str, pod: Pod) -> str:
        owners, only = pod.metadata.owner_references, f'node "{node}" can only create pods with'
        if not is_mirror(pod):
            return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
        if pod.spec.node_name != node:
            return f"{only} spec.nodeName set to itself"
        if len(owners) > 1:
            return f"{only} a single owner reference set to itself"
        if not owners or (owners[0].api_version, owners[0].kind, owners[0].name) != ("v1", "Node", node):
            return f"{only} an owner reference set to itself"
        if not owners[0].controller:
            return f"{only} a controller owner reference set to itself"
        if owners[0].block_owner_deletion:
            return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
        standing = self._find(Node, "", node)
        if standing is None:
            raise not_found("node", node)
        if owners[0].uid != standing.metadata.uid:
            told = f"expected {owners[0].uid} got {standing.metadata.uid}"
            return f"node {node} UID mismatch: {told}"
        what = next(_referred(pod), "")
        return f'node "{node}" can not create pods that reference {what}' if what else ""

    def _eviction(self, node: str, attributes: Attributes, new: Any, old: Any) -> str:
        pod = self._find(Pod, attributes.namespace, attributes.name)
        if pod is None:
            raise not_found("pod", attributes.name)
        own = pod.spec.node_name == node
        return "" if own else f"node {node} can only evict pods with spec.nodeName set to itself"

    def _token(self, node: str, attributes: Attributes, new: TokenRequest, old: Any) -> str:
        ref = new.spec.bound_object_ref
        if ref is None or ref.api_version != "v1" or ref.kind != "Pod" or not ref.name:
            return "node requested token not bound to a pod"
        if not ref.uid:
            return "node requested token with a pod binding without a uid"
        pod = self._find(Pod, attributes.namespace, ref.name)
        if pod is None:
            raise not_found("pod", ref.name)
        if ref.uid != pod.metadata.uid:
            return (
                f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        if pod.spec.node_name != node:
            return "node requested token bound to a pod scheduled on a different node"
        if len(new.spec.audiences) > 1:
            return "node may only request 0 or 1 audiences"
        return self._audience(attributes, pod, "".join(new.spec.audiences))

    def _audience(self, attributes: Attributes, pod: Pod, audience: str) -> str:
        """An audience is one of the pod's volumes, of their drivers, or one that the node has a right to."""
        missing: dict[str, None] = {}
        for volume in pod.spec.volumes:
            if audience in _projected(volume):
                return ""
            driver = self._driver(pod, volume, missing)
            if not driver:
                continue
            known = self._find(CSIDriver, "", driver)
            if known is None:
                missing[f'csidriver.storage.k8s.io "{driver}" not found'] = None
            elif any(one.audience == audience for one in known.spec.token_requests):
                return ""
        if missing:
            told = ", ".join(missing)
            return f'error validating audience "{audience}": {f"[{told}]" if len(missing) > 1 else told}'
        asked = RequestInfo(
            REQUESTS_TOKEN, "", True, "", "v1", attributes.namespace, audience, "", attributes.name
        )
        if self._may(attributes.user, asked).decision is Decision.ALLOW:
            return ""
        who = attributes.user.name
        return (
            f'audience "{audience}" not found in pod spec volume, {who} is not authorized to request tokens '
            "for this audience"
        )

    def _driver(self, pod: Pod, volume: Volume, missing: dict[str, None]) -> str:
        """The CSI driver of a volume, if it has one. What is not there is added to `missing`."""
        if volume.csi is not None:
            return volume.csi.driver
        if (name := volume_claim_of(pod, volume)) is None:
            return _migrated(volume)
        claim = self._find(PersistentVolumeClaim, pod.metadata.namespace, name)
        if claim is None:
            missing[f'persistentvolumeclaim "{name}" not found'] = None
            return ""
        if not claim.spec.volume_name:
            return ""
        bound = self._find(PersistentVolume, "", claim.spec.volume_name)
        if bound is None:
            missing[f'persistentvolume "{claim.spec.volume_name}" not found'] = None
            return ""
        return bound.spec.csi.driver if bound.spec.csi is not None else _migrated(bound.spec)


def _migrated(source: Any) -> str:
    return next((driver for field, driver in MIGRATED.items() if getattr(source, field) is not None), "")


def _projected(volume: Volume) -> list[str]:
    """The audiences of the tokens in a volume."""
    sources = volume.projected.sources if volume.projected is not None else []
    tokens = [source.service_account_token for source in sources]
    return [token.audience for token in tokens if token is not None]


def _referred(pod: Pod) -> Iterator[str]:
    """What a mirror pod may not refer to, as a message names it. Of secrets and accounts the ServiceAccount
    plugin has told already."""
    if next(config_maps_of(pod), None) is not None:
        yield "configmaps"
    if pod.spec.resource_claims:
        yield "resourceclaims"
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield "persistentvolumeclaims"
        if volume.ephemeral is not None:
            yield "persistentvolumeclaims (via ephemeral volumes)"
        if volume.csi is not None:
            yield "csidrivers (via CSI volumes)"
        if volume.glusterfs is not None:
            yield "endpoints (via glusterFS volumes)"
        for source in volume.projected.sources if volume.projected is not None else ():
            if source.cluster_trust_bundle is not None:
                yield "clustertrustbundles"
            if source.pod_certificate is not None:
                yield "podcertificates"


def _other_subresource(node: str, attributes: Attributes, new: Any, old: Any) -> str:
    return (
        f"unexpected pod subresource \"{attributes.subresource}\", only 'status' and 'eviction' are allowed"
    )


def _pod_status(node: str, attributes: Attributes, new: Pod, old: Pod) -> str:
    if old.spec.node_name != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if old.metadata.labels != new.metadata.labels:
        return f'node "{node}" cannot update labels through pod status'
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        return f'node "{node}" cannot update resource claim statues'
    if old.status.extended_resource_claim_status != new.status.extended_resource_claim_status:
        return f'node "{node}" cannot update extended resource claim status'
    return ""


def _node(node: str, attributes: Attributes, new: Node | None, old: Node | None) -> str:
    named = old.metadata.name if old is not None else new.metadata.name if new is not None else ""
    if named != node:
        return f'node "{node}" is not allowed to modify node "{named}"'
    if new is None:
        return ""
    if old is None:
        if new.spec.config_source is not None:
            return f'node "{node}" is not allowed to create pods with a non-nil configSource'
        if labels := forbidden_labels(new.metadata.labels, {}):
            return f'node "{node}" is not allowed to set the following labels: {labels}'
        return ""
    if new.spec.config_source not in (None, old.spec.config_source):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if new.spec.taints != old.spec.taints:
        return f'node "{node}" is not allowed to modify taints'
    if labels := forbidden_labels(new.metadata.labels, old.metadata.labels):
        return f"is not allowed to modify labels: {labels}"
    if new.metadata.owner_references != old.metadata.owner_references:
        return f'node "{node}" is not allowed to modify ownerReferences'
    return ""


def forbidden_labels(new: dict[str, str], old: dict[str, str]) -> str:
    """The labels that differ and that a node may not change, listed; empty if there are none."""
    changed = (key for key in {*new, *old} if key not in old or key not in new or new[key] != old[key])
    return ", ".join(sorted(key for key in changed if not _may_change(key)))


def _may_change(label: str) -> bool:
    prefix = label.partition("/")[0] if "/" in label else ""
    if _is_of(prefix, RESTRICTED):
        return False
    if not any(_is_of(prefix, domain) for domain in KUBERNETES):
        return True
    return label in KUBELET_LABELS or any(_is_of(prefix, domain) for domain in KUBELETS)


def _is_of(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")


def _claim_status(
    node: str, attributes: Attributes, new: PersistentVolumeClaim, old: PersistentVolumeClaim
) -> str:
    return "" if _unsized(new) == _unsized(old) else f'node "{node}" {OTHER_FIELDS}'


def _unsized(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Without what a node tells of a claim."""
    meta = replace(claim.metadata, resource_version="", managed_fields=[])
    told: dict[str, Any] = {"capacity": {}, "conditions": [], "allocated_resources": {}}
    status = replace(claim.status, allocated_resource_statuses={}, **told)
    return replace(claim, metadata=meta, status=status)


def _lease(node: str, attributes: Attributes, new: Any, old: Any) -> str:
    if attributes.namespace != LEASE_NAMESPACE:
        return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
    return "" if (new or old).metadata.name == node else OWN_LEASE


def _csi_node(node: str, attributes: Attributes, new: Any, old: Any) -> str:
    return "" if (new or old).metadata.name == node else OWN_CSI_NODE


def _slice(node: str, attributes: Attributes, new: ResourceSlice | None, old: ResourceSlice | None) -> str:
    verb = attributes.operation.lower()
    own = any(one is not None and one.spec.node_name == node for one in (new, old))
    return "" if own else f"can only {verb} ResourceSlice with the same NodeName as the requesting node"


def _certificate(node: str, attributes: Attributes, new: CertificateSigningRequest, old: Any) -> str:
    if new.spec.signer_name not in (KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER):
        return ""
    try:
        names = attributes_of(read_request(new.spec.request).subject, x509.NameOID.COMMON_NAME)
    except ValueError as error:
        return f"unable to parse csr: {error}"
    own = f"{NODE}{node}"
    # As in Go the last of several counts.
    return "" if names[-1:] == [own] else f"can only create a node CSR with CN={own}"
