"""The cluster roles and bindings that kube-apiserver creates when it starts, as a table. Pure data.

`admin`, `edit` and `view` are aggregated from the roles that carry their label.
"""

from __future__ import annotations

from podling.apiserver.authz.roles.rules import (
    ANNOTATIONS,
    APPS,
    AUTHENTICATION,
    AUTHORIZATION,
    BATCH,
    CERTIFICATES,
    COORDINATION,
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
    WRITE,
    may,
    may_get,
)
from podling.model.rules.certificates import JOINED_NODES, NODES
from podling.model.types.meta import LabelSelector, ObjectMeta
from podling.model.types.rbac import (
    GROUP,
    SERVICE_ACCOUNTS,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleRef,
    Subject,
)

AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
AGGREGATED = ("admin", "edit", "view")
PART_OF = {
    "edit": "admin",
    "view": "edit",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}
"""Cluster role → the aggregated role it is part of."""
_HEALTH = "/healthz /livez /readyz /version /version/"
_REVIEWS = (
    may("create", AUTHENTICATION, "tokenreviews"),
    may("create", AUTHORIZATION, "subjectaccessreviews"),
)


BOOTSTRAPPERS = "system:bootstrappers"
_APPROVED = "system:certificates.k8s.io:certificatesigningrequests:"
JOINING: dict[str, tuple[str, str]] = {
    "podling:node-bootstrapper": ("system:node-bootstrapper", BOOTSTRAPPERS),
    "podling:node-autoapprove-bootstrap": (f"{_APPROVED}nodeclient", BOOTSTRAPPERS),
    "podling:node-autoapprove-certificate-rotation": (f"{_APPROVED}selfnodeclient", NODES),
    "podling:get-nodes": ("podling:get-nodes", BOOTSTRAPPERS),
    "podling:nodes": ("podling:nodes", JOINED_NODES),
}
"""Binding → its cluster role and the group it is for. Nodes join by these; kube-apiserver leaves it to those
who set up the cluster to make their like, as kubeadm does."""
JOINED: dict[str, tuple[PolicyRule, ...]] = {
    # Whether a node's name is taken.
    "podling:get-nodes": (may("get", CORE, "nodes"),),
    # What the network of a node is made of: it reads as kube-proxy and the agents of network plugins.
    "podling:nodes": (
        may("list watch", CORE, "namespaces nodes pods services"),
        EVENTS,
        may("list watch", DISCOVERY, "endpointslices"),
        may("list watch", NETWORKING, "networkpolicies"),
        may("get", NETWORKING, "servicecidrs"),
    ),
}
"""Cluster role of JOINING → its rules, of those that Kubernetes does not have."""
OF_BEFORE = ("podling:node", "podling:node-proxier")
"""Bindings of earlier versions, by which every node had what is of the role `podling:nodes`, and more."""


def _approves(signer: str) -> tuple[PolicyRule, ...]:
    return (may("approve", CERTIFICATES, "signers", f"kubernetes.io/{signer}"),)


RULES: dict[str, tuple[PolicyRule, ...]] = {
    "cluster-admin": (may("*", "*", "*"), PolicyRule(verbs=["*"], non_resource_urls=["*"])),
    "system:discovery": (may_get(f"{_HEALTH} /openapi /openapi/* /api /api/* /apis /apis/*"),),
    "system:public-info-viewer": (may_get(_HEALTH),),
    "system:monitoring": (
        may_get(
            "/flagz /healthz /healthz/* /livez /livez/* /readyz /readyz/* /metrics /metrics/slis /statusz"
        ),
        may("get", CORE, "nodes/metrics"),
    ),
    "system:service-account-issuer-discovery": (
        may_get(
            "/.well-known/openid-configuration /.well-known/openid-configuration/ "
            "/openid/v1/jwks /openid/v1/jwks/"
        ),
    ),
    "system:basic-user": (
        may("create", AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
        may("create", AUTHENTICATION, "selfsubjectreviews"),
    ),
    "system:aggregate-to-admin": (
        may("create", AUTHORIZATION, "localsubjectaccessreviews"),
        may(f"{READ} {WRITE}", GROUP, "roles rolebindings"),
    ),
    "system:aggregate-to-edit": (
        may(READ, CORE, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        may("impersonate", CORE, "serviceaccounts"),
        may(WRITE, CORE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
        may("create", CORE, "pods/eviction"),
        may(
            WRITE,
            CORE,
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale "
            "secrets serviceaccounts services services/proxy",
        ),
        may("create", CORE, "serviceaccounts/token"),
        may(WRITE, (CORE, "events.k8s.io"), "events"),
        may(
            WRITE,
            APPS,
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
        ),
        may(WRITE, "autoscaling", "horizontalpodautoscalers"),
        may(WRITE, BATCH, "cronjobs jobs"),
        may(
            WRITE,
            EXTENSIONS,
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies "
            "replicasets replicasets/scale replicationcontrollers/scale",
        ),
        may(WRITE, POLICY, "poddisruptionbudgets"),
        may(WRITE, NETWORKING, "ingresses networkpolicies"),
        may(f"{READ} {WRITE}", COORDINATION, "leases"),
        may(WRITE, DEVICES, "resourceclaims resourceclaimtemplates"),
    ),
    "system:aggregate-to-view": (
        may(
            READ,
            CORE,
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
        ),
        may(
            READ,
            CORE,
            "bindings limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        may(READ, CORE, "namespaces"),
        may(READ, (CORE, "events.k8s.io"), "events"),
        may(READ, DISCOVERY, "endpointslices"),
        may(
            READ,
            APPS,
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
            "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
            "statefulsets/scale statefulsets/status",
        ),
        may(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        may(READ, BATCH, "cronjobs cronjobs/status jobs jobs/status"),
        may(
            READ,
            EXTENSIONS,
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
        ),
        may(READ, POLICY, "poddisruptionbudgets poddisruptionbudgets/status"),
        may(READ, NETWORKING, "ingresses ingresses/status networkpolicies"),
        may(READ, DEVICES, "resourceclaims resourceclaims/status resourceclaimtemplates"),
    ),
    "system:node": (
        may("create", AUTHENTICATION, "tokenreviews"),
        may("create", AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews"),
        may(READ, CORE, "services"),
        may(f"create {READ}", CORE, "nodes"),
        may("patch update", CORE, "nodes/status"),
        may("patch update", CORE, "nodes"),
        EVENTS,
        may(READ, CORE, "pods"),
        may("create delete", CORE, "pods"),
        may("patch update", CORE, "pods/status"),
        may("create", CORE, "pods/eviction"),
        may(READ, CORE, "configmaps secrets"),
        may("get", CORE, "persistentvolumeclaims persistentvolumes"),
        may("get", CORE, "endpoints"),
        may(f"create {READ}", CERTIFICATES, "certificatesigningrequests"),
        may("create delete get patch update", COORDINATION, "leases"),
        may("get", STORAGE, "volumeattachments"),
        may("create", CORE, "serviceaccounts/token"),
        may("get patch update", CORE, "persistentvolumeclaims/status"),
        may(READ, STORAGE, "csidrivers"),
        may("create delete get patch update", STORAGE, "csinodes"),
        may(READ, "node.k8s.io", "runtimeclasses"),
        may("get", DEVICES, "resourceclaims"),
        may("deletecollection", DEVICES, "resourceslices"),
        may("get", CORE, "serviceaccounts"),
    ),
    "system:node-proxier": (
        may("list watch", CORE, "endpoints services"),
        may(READ, CORE, "nodes"),
        EVENTS,
        may("list watch", NETWORKING, "servicecidrs"),
        may("list watch", DISCOVERY, "endpointslices"),
    ),
    "system:node-problem-detector": (
        may("get", CORE, "nodes"),
        may("patch", CORE, "nodes/status"),
        EVENTS,
    ),
    "system:kubelet-api-admin": (
        may(READ, CORE, "nodes"),
        may("proxy", CORE, "nodes"),
        may("*", CORE, "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        may("*", CORE, "nodes/configz nodes/healthz nodes/pods"),
    ),
    "system:node-bootstrapper": (may(f"create {READ}", CERTIFICATES, "certificatesigningrequests"),),
    "system:auth-delegator": _REVIEWS,
    "system:kube-aggregator": (may(READ, CORE, "endpoints services"),),
    "system:kube-controller-manager": (
        EVENTS,
        may("create", COORDINATION, "leases"),
        may("get update", COORDINATION, "leases", "kube-controller-manager"),
        may("create", CORE, "secrets serviceaccounts"),
        may("delete", CORE, "secrets"),
        may("get", CORE, "configmaps namespaces secrets serviceaccounts"),
        may("update", CORE, "secrets serviceaccounts"),
        *_REVIEWS,
        may("list watch", "*", "*"),
        may("create", CORE, "serviceaccounts/token"),
    ),
    "system:kube-scheduler": (
        EVENTS,
        may("create", COORDINATION, "leases"),
        may(f"{READ} update", COORDINATION, "leases", "kube-scheduler"),
        may(f"{READ} {WRITE}", COORDINATION, "leasecandidates"),
        may(READ, CORE, "nodes"),
        may(f"delete {READ}", CORE, "pods"),
        may("create", CORE, "bindings pods/binding"),
        may("patch update", CORE, "pods/status"),
        may(READ, CORE, "replicationcontrollers services"),
        may(READ, (APPS, EXTENSIONS), "replicasets"),
        may(READ, APPS, "statefulsets"),
        may(READ, POLICY, "poddisruptionbudgets"),
        may(READ, CORE, "persistentvolumeclaims persistentvolumes"),
        *_REVIEWS,
        may(READ, STORAGE, "csinodes"),
        may(READ, STORAGE, "volumeattachments"),
        may(READ, CORE, "namespaces"),
        may(READ, STORAGE, "csidrivers"),
        may(READ, STORAGE, "csistoragecapacities"),
        may(READ, DEVICES, "deviceclasses"),
        may(f"{READ} patch update", DEVICES, "resourceclaims"),
        may(f"{READ} patch update", DEVICES, "resourceclaims/status"),
        may("update", CORE, "pods/finalizers"),
        may(READ, DEVICES, "resourceslices"),
        may("create delete", DEVICES, "resourceclaims"),
        may("patch update", DEVICES, "resourceclaims/binding"),
    ),
    "system:heapster": (
        may(READ, CORE, "events namespaces nodes pods"),
        may(READ, EXTENSIONS, "deployments"),
    ),
    "system:kube-dns": (may("list watch", CORE, "endpoints services"),),
    "system:persistent-volume-provisioner": (
        may(f"create delete {READ}", CORE, "persistentvolumes"),
        may(f"update {READ}", CORE, "persistentvolumeclaims"),
        may(READ, STORAGE, "storageclasses"),
        may("watch", CORE, "events"),
        EVENTS,
    ),
    "system:volume-scheduler": (
        may(f"patch update {READ}", CORE, "persistentvolumes"),
        may(READ, STORAGE, "storageclasses"),
        may(f"patch update {READ}", CORE, "persistentvolumeclaims"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        may("create", CERTIFICATES, "certificatesigningrequests/nodeclient"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        may("create", CERTIFICATES, "certificatesigningrequests/selfnodeclient"),
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": _approves("legacy-unknown"),
    "system:certificates.k8s.io:kubelet-serving-approver": _approves("kubelet-serving"),
    "system:certificates.k8s.io:kube-apiserver-client-approver": _approves("kube-apiserver-client"),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": _approves(
        "kube-apiserver-client-kubelet"
    ),
}
"""Cluster role → its rules."""


def _group(name: str) -> Subject:
    return Subject(kind="Group", api_group=GROUP, name=name)


def _user(name: str) -> Subject:
    return Subject(kind="User", api_group=GROUP, name=name)


SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "cluster-admin": (_group("system:masters"),),
    "system:monitoring": (_group("system:monitoring"),),
    "system:discovery": (_group("system:authenticated"),),
    "system:basic-user": (_group("system:authenticated"),),
    "system:public-info-viewer": (_group("system:authenticated"), _group("system:unauthenticated")),
    "system:node-proxier": (_user("system:kube-proxy"),),
    "system:kube-controller-manager": (_user("system:kube-controller-manager"),),
    "system:kube-dns": (Subject(kind="ServiceAccount", name="kube-dns", namespace="kube-system"),),
    "system:kube-scheduler": (_user("system:kube-scheduler"),),
    "system:volume-scheduler": (_user("system:kube-scheduler"),),
    "system:node": (),
    "system:service-account-issuer-discovery": (_group(SERVICE_ACCOUNTS),),
}
"""Binding → the subjects it binds to the cluster role of its name. There is none for nodes, which have an
authorizer of their own.
"""


def system_roles() -> list[ClusterRole]:
    roles = [ClusterRole(metadata=_meta(name), rules=list(rules)) for name, rules in RULES.items()]
    for name in AGGREGATED:
        selector = LabelSelector(match_labels={AGGREGATE + name: "true"})
        rule = AggregationRule(cluster_role_selectors=[selector])
        roles.append(ClusterRole(metadata=_meta(name), aggregation_rule=rule))
    return roles


def metrics_roles() -> list[ClusterRole]:
    """What the metrics server of Kubernetes brings: who may see what there is may see what it uses."""
    labels = {AGGREGATE + name: "true" for name in AGGREGATED}
    meta = ObjectMeta(name="system:aggregated-metrics-reader", labels=labels, annotations=dict(ANNOTATIONS))
    return [ClusterRole(metadata=meta, rules=[may(READ, "metrics.k8s.io", "nodes pods")])]


def system_bindings() -> list[ClusterRoleBinding]:
    return [
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name, labels=dict(LABELS), annotations=dict(ANNOTATIONS)),
            subjects=list(subjects),
            role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=name),
        )
        for name, subjects in SUBJECTS.items()
    ]


def joining_roles() -> list[ClusterRole]:
    return [
        ClusterRole(metadata=ObjectMeta(name=name, annotations=dict(ANNOTATIONS)), rules=list(rules))
        for name, rules in JOINED.items()
    ]


def joining_bindings() -> list[ClusterRoleBinding]:
    return [
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name, annotations=dict(ANNOTATIONS)),
            subjects=[_group(group)],
            role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=role),
        )
        for name, (role, group) in JOINING.items()
    ]


def _meta(name: str) -> ObjectMeta:
    whole = PART_OF.get(name)
    labels = {**LABELS, AGGREGATE + whole: "true"} if whole else dict(LABELS)
    return ObjectMeta(name=name, labels=labels, annotations=dict(ANNOTATIONS))
