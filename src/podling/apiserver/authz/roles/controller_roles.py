"""The cluster roles and bindings of Kubernetes' controllers (`system:controller:…`), as a table. Pure data.

Clients look for these roles and bind to them, whether or not the controller runs here.
"""

from __future__ import annotations

from podling.apiserver.authz.roles.rules import (
    ANNOTATIONS,
    APPS,
    AUTHORIZATION,
    BATCH,
    CERTIFICATES,
    CORE,
    DEVICES,
    DISCOVERY,
    EVENTS,
    EXTENSIONS,
    LABELS,
    NETWORKING,
    POLICY,
    READ,
    STORAGE,
    may,
)
from podling.model.types.meta import ObjectMeta
from podling.model.types.rbac import GROUP, ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject

PREFIX = "system:controller:"
WORKLOADS = (APPS, EXTENSIONS)
OWN_PODS = may("create delete list patch watch", CORE, "pods")
REVISIONS = may(f"{READ} create delete patch update", APPS, "controllerrevisions")
CLIENT = "kubernetes.io/kube-apiserver-client"
SIGNERS = f"{CLIENT} {CLIENT}-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown"

RULES: dict[str, tuple[PolicyRule, ...]] = {
    "attachdetach-controller": (
        may("list watch", CORE, "persistentvolumeclaims persistentvolumes"),
        may(READ, CORE, "nodes"),
        may("patch update", CORE, "nodes/status"),
        may("list watch", CORE, "pods"),
        EVENTS,
        may(f"{READ} create delete", STORAGE, "volumeattachments"),
        may(READ, STORAGE, "csidrivers"),
        may(READ, STORAGE, "csinodes"),
    ),
    "certificate-controller": (
        may(f"{READ} delete", CERTIFICATES, "certificatesigningrequests"),
        may("update", CERTIFICATES, "certificatesigningrequests/approval certificatesigningrequests/status"),
        may("approve", CERTIFICATES, "signers", f"{CLIENT}-kubelet"),
        may("sign", CERTIFICATES, "signers", SIGNERS),
        may("create", AUTHORIZATION, "subjectaccessreviews"),
        EVENTS,
    ),
    "clusterrole-aggregation-controller": (may(f"{READ} escalate patch update", GROUP, "clusterroles"),),
    "cronjob-controller": (
        may(f"{READ} update", BATCH, "cronjobs"),
        may(f"{READ} create delete patch update", BATCH, "jobs"),
        may("update", BATCH, "cronjobs/status"),
        may("update", BATCH, "cronjobs/finalizers"),
        may("delete list watch", CORE, "pods"),
        EVENTS,
    ),
    "daemon-set-controller": (
        may(READ, WORKLOADS, "daemonsets"),
        may("update", WORKLOADS, "daemonsets/status"),
        may("update", WORKLOADS, "daemonsets/finalizers"),
        may("list watch", CORE, "nodes"),
        OWN_PODS,
        may("create", CORE, "pods/binding"),
        REVISIONS,
        EVENTS,
    ),
    "deployment-controller": (
        may(f"{READ} update", WORKLOADS, "deployments"),
        may("update", WORKLOADS, "deployments/status"),
        may("update", WORKLOADS, "deployments/finalizers"),
        may(f"{READ} create delete patch update", WORKLOADS, "replicasets"),
        may(f"{READ} update", CORE, "pods"),
        EVENTS,
    ),
    "device-taint-eviction-controller": (
        may(f"{READ} delete", CORE, "pods"),
        may("patch update", CORE, "pods/status"),
        may(READ, DEVICES, "resourceclaims"),
        may(READ, DEVICES, "resourceslices"),
        may(READ, DEVICES, "deviceclasses"),
        EVENTS,
    ),
    "directory-provisioner": (
        may(f"{READ} create delete update", CORE, "persistentvolumes"),
        may(f"{READ} update", CORE, "persistentvolumeclaims"),
        may("update", CORE, "persistentvolumeclaims/status"),
        may(f"{READ} create", STORAGE, "storageclasses"),
        EVENTS,
    ),
    "disruption-controller": (
        may(READ, WORKLOADS, "deployments"),
        may(READ, WORKLOADS, "replicasets"),
        may(READ, CORE, "replicationcontrollers"),
        may(READ, POLICY, "poddisruptionbudgets"),
        may(READ, APPS, "statefulsets"),
        may("update", POLICY, "poddisruptionbudgets/status"),
        may("patch update", CORE, "pods/status"),
        may("get", "*", "*/scale"),
        EVENTS,
    ),
    "endpoint-controller": (
        may(READ, CORE, "pods services"),
        may(f"{READ} create delete update", CORE, "endpoints"),
        may("create", CORE, "endpoints/restricted"),
        EVENTS,
    ),
    "endpointslice-controller": (
        may(READ, CORE, "nodes pods services"),
        may("update", CORE, "services/finalizers"),
        may(f"{READ} create delete update", DISCOVERY, "endpointslices"),
        may("create", DISCOVERY, "endpointslices/restricted"),
        EVENTS,
    ),
    "endpointslicemirroring-controller": (
        may(READ, CORE, "endpoints services"),
        may("update", CORE, "services/finalizers"),
        may("update", CORE, "endpoints/finalizers"),
        may(f"{READ} create delete update", DISCOVERY, "endpointslices"),
        may("create", DISCOVERY, "endpointslices/restricted"),
        EVENTS,
    ),
    "ephemeral-volume-controller": (
        may(READ, CORE, "pods"),
        may("update", CORE, "pods/finalizers"),
        may(f"{READ} create", CORE, "persistentvolumeclaims"),
        EVENTS,
    ),
    "expand-controller": (
        may(f"{READ} patch update", CORE, "persistentvolumes"),
        may("patch update", CORE, "persistentvolumeclaims/status"),
        may(READ, CORE, "persistentvolumeclaims"),
        EVENTS,
    ),
    "generic-garbage-collector": (may(f"{READ} delete patch update", "*", "*"), EVENTS),
    "horizontal-pod-autoscaler": (
        may(READ, "autoscaling", "horizontalpodautoscalers"),
        may("update", "autoscaling", "horizontalpodautoscalers/status"),
        may("get update", "*", "*/scale"),
        may("list watch", CORE, "pods"),
        may("list watch", "metrics.k8s.io", "pods"),
        may(READ, "custom.metrics.k8s.io", "*"),
        may(READ, "external.metrics.k8s.io", "*"),
        EVENTS,
    ),
    "job-controller": (
        may(f"{READ} patch update", BATCH, "jobs"),
        may("update", BATCH, "jobs/status"),
        may("update", BATCH, "jobs/finalizers"),
        OWN_PODS,
        EVENTS,
    ),
    "legacy-service-account-token-cleaner": (
        may("get", CORE, "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        may("delete patch", CORE, "secrets"),
    ),
    "namespace-controller": (
        may(f"{READ} delete", CORE, "namespaces"),
        may("update", CORE, "namespaces/finalize namespaces/status"),
        may(f"{READ} delete deletecollection", "*", "*"),
    ),
    "node-controller": (
        may(f"{READ} delete patch update", CORE, "nodes"),
        may("patch update", CORE, "nodes/status"),
        may("patch update", CORE, "pods/status"),
        may(f"{READ} delete", CORE, "pods"),
        EVENTS,
    ),
    "persistent-volume-binder": (
        may(f"{READ} create delete update", CORE, "persistentvolumes"),
        may("update", CORE, "persistentvolumes/status"),
        may(f"{READ} update", CORE, "persistentvolumeclaims"),
        may("update", CORE, "persistentvolumeclaims/status"),
        may(f"{READ} create delete", CORE, "pods"),
        may(READ, STORAGE, "storageclasses"),
        may("list watch", CORE, "nodes"),
        EVENTS,
        may("watch", CORE, "events"),
    ),
    "pod-garbage-collector": (
        may("delete list watch", CORE, "pods"),
        may(READ, CORE, "nodes"),
        may("patch", CORE, "pods/status"),
    ),
    "pv-protection-controller": (may(f"{READ} update", CORE, "persistentvolumes"), EVENTS),
    "pvc-protection-controller": (
        may(f"{READ} update", CORE, "persistentvolumeclaims"),
        may("update", CORE, "persistentvolumeclaims/status"),
        may(READ, CORE, "pods"),
        EVENTS,
    ),
    "replicaset-controller": (
        may(f"{READ} update", WORKLOADS, "replicasets"),
        may("update", WORKLOADS, "replicasets/status"),
        may("update", WORKLOADS, "replicasets/finalizers"),
        OWN_PODS,
        EVENTS,
    ),
    "replication-controller": (
        may(f"{READ} update", CORE, "replicationcontrollers"),
        may("update", CORE, "replicationcontrollers/status"),
        may("update", CORE, "replicationcontrollers/finalizers"),
        OWN_PODS,
        EVENTS,
    ),
    "resource-claim-controller": (
        may(READ, CORE, "pods"),
        may("update", CORE, "pods/finalizers"),
        may(f"{READ} create delete", DEVICES, "resourceclaims"),
        may("patch update", DEVICES, "resourceclaims resourceclaims/status"),
        may("patch update", CORE, "pods/status"),
        EVENTS,
        may("patch update", DEVICES, "resourceclaims/binding"),
    ),
    "resourcequota-controller": (
        may("list watch", "*", "*"),
        may("update", CORE, "resourcequotas/status"),
        EVENTS,
    ),
    "root-ca-cert-publisher": (may("create update", CORE, "configmaps"), EVENTS),
    "route-controller": (
        may("list watch", CORE, "nodes"),
        may("patch", CORE, "nodes/status"),
        EVENTS,
    ),
    "selinux-warning-controller": (
        EVENTS,
        may(READ, CORE, "persistentvolumes"),
        may(READ, CORE, "persistentvolumeclaims"),
        may(READ, CORE, "pods"),
        may(READ, STORAGE, "csidrivers"),
    ),
    "service-account-controller": (may("create", CORE, "serviceaccounts"), EVENTS),
    "service-cidrs-controller": (
        may(f"{READ} patch update", NETWORKING, "servicecidrs"),
        may("patch update", NETWORKING, "servicecidrs/finalizers"),
        may("patch update", NETWORKING, "servicecidrs/status"),
        may(READ, NETWORKING, "ipaddresses"),
        EVENTS,
    ),
    "service-controller": (
        may(READ, CORE, "services"),
        may("patch update", CORE, "services/status"),
        may("list watch", CORE, "nodes"),
        EVENTS,
    ),
    "statefulset-controller": (
        may("list watch", CORE, "pods"),
        may(READ, APPS, "statefulsets"),
        may("update", APPS, "statefulsets/status"),
        may("update", APPS, "statefulsets/finalizers"),
        may("create delete get patch update", CORE, "pods"),
        REVISIONS,
        may(f"{READ} create", CORE, "persistentvolumeclaims"),
        may("delete update", CORE, "persistentvolumeclaims"),
        may("update", CORE, "pods/finalizers"),
        EVENTS,
    ),
    "ttl-after-finished-controller": (may(f"{READ} delete", BATCH, "jobs"), EVENTS),
    "ttl-controller": (may("list patch update watch", CORE, "nodes"), EVENTS),
    "validatingadmissionpolicy-status-controller": (
        may(READ, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        may("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
        EVENTS,
    ),
    "volumeattributesclass-protection-controller": (
        may(READ, CORE, "persistentvolumeclaims"),
        may(READ, CORE, "persistentvolumes"),
        may(f"{READ} update", STORAGE, "volumeattributesclasses"),
        EVENTS,
    ),
}
"""Controller, which is also the name of its service account in `kube-system` → its rules."""


def controller_roles() -> list[ClusterRole]:
    return [ClusterRole(metadata=_meta(name), rules=list(rules)) for name, rules in RULES.items()]


def controller_bindings() -> list[ClusterRoleBinding]:
    return [
        ClusterRoleBinding(
            metadata=_meta(name),
            subjects=[Subject(kind="ServiceAccount", name=name, namespace="kube-system")],
            role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=PREFIX + name),
        )
        for name in RULES
    ]


def _meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=PREFIX + name, labels=dict(LABELS), annotations=dict(ANNOTATIONS))
