"""The cluster roles and bindings every cluster has, as Kubernetes' API server makes them when it starts: a
table of who may do what. Pure data.

`admin`, `edit` and `view` are made of the roles that carry their label: what other roles are to be part of
them needs only the label.
"""

from __future__ import annotations

from podling.model.meta import LabelSelector, ObjectMeta
from podling.model.rbac import (
    GROUP,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleRef,
    Subject,
)

LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
CORE, APPS, BATCH, EXTENSIONS, POLICY = "", "apps", "batch", "extensions", "policy"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
CERTIFICATES, COORDINATION, DISCOVERY = "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io"
NETWORKING, STORAGE, DEVICES = "networking.k8s.io", "storage.k8s.io", "resource.k8s.io"


def _may(verbs: str, group: str, resources: str, names: str = "") -> PolicyRule:
    return PolicyRule(
        verbs=sorted(verbs.split()),
        api_groups=[group],
        resources=sorted(resources.split()),
        resource_names=names.split(),
    )


def _may_get(paths: str) -> PolicyRule:
    return PolicyRule(verbs=["get"], non_resource_urls=sorted(paths.split()))


_EVENTS = PolicyRule(
    verbs=["create", "patch", "update"], api_groups=[CORE, "events.k8s.io"], resources=["events"]
)
_HEALTH = "/healthz /livez /readyz /version /version/"
_REVIEWS = (
    _may("create", AUTHENTICATION, "tokenreviews"),
    _may("create", AUTHORIZATION, "subjectaccessreviews"),
)


def _elected(component: str) -> tuple[PolicyRule, ...]:
    """What a component needs of which one of several acts."""
    return (
        _may("create", COORDINATION, "leases"),
        _may("get update", COORDINATION, "leases", component),
    )


def _approves(signer: str) -> tuple[PolicyRule, ...]:
    return (_may("approve", CERTIFICATES, "signers", f"kubernetes.io/{signer}"),)


RULES: dict[str, tuple[PolicyRule, ...]] = {
    "cluster-admin": (_may("*", "*", "*"), PolicyRule(verbs=["*"], non_resource_urls=["*"])),
    "system:discovery": (_may_get(f"{_HEALTH} /openapi /openapi/* /api /api/* /apis /apis/*"),),
    "system:public-info-viewer": (_may_get(_HEALTH),),
    "system:monitoring": (
        _may_get("/healthz /healthz/* /livez /livez/* /readyz /readyz/* /metrics /metrics/slis"),
    ),
    "system:service-account-issuer-discovery": (
        _may_get(
            "/.well-known/openid-configuration /.well-known/openid-configuration/ "
            "/openid/v1/jwks /openid/v1/jwks/"
        ),
    ),
    "system:basic-user": (
        _may("create", AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _may("create", AUTHENTICATION, "selfsubjectreviews"),
    ),
    "system:aggregate-to-admin": (
        _may("create", AUTHORIZATION, "localsubjectaccessreviews"),
        _may(f"{READ} {WRITE}", GROUP, "roles rolebindings"),
    ),
    "system:aggregate-to-edit": (
        _may(READ, CORE, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        _may("impersonate", CORE, "serviceaccounts"),
        _may(WRITE, CORE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
        _may("create", CORE, "pods/eviction"),
        _may(
            WRITE,
            CORE,
            "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale "
            "secrets serviceaccounts services services/proxy",
        ),
        _may("create", CORE, "serviceaccounts/token"),
        _may(
            WRITE,
            APPS,
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
        ),
        _may(WRITE, "autoscaling", "horizontalpodautoscalers"),
        _may(WRITE, BATCH, "cronjobs jobs"),
        _may(
            WRITE,
            EXTENSIONS,
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies "
            "replicasets replicasets/scale replicationcontrollers/scale",
        ),
        _may(WRITE, POLICY, "poddisruptionbudgets"),
        _may(WRITE, NETWORKING, "ingresses networkpolicies"),
        _may(f"{READ} {WRITE}", COORDINATION, "leases"),
        _may(WRITE, DEVICES, "resourceclaims resourceclaimtemplates"),
    ),
    "system:aggregate-to-view": (
        _may(
            READ,
            CORE,
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
        ),
        _may(
            READ,
            CORE,
            "bindings events limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        _may(READ, CORE, "namespaces"),
        _may(READ, DISCOVERY, "endpointslices"),
        _may(
            READ,
            APPS,
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
            "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
            "statefulsets/scale statefulsets/status",
        ),
        _may(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        _may(READ, BATCH, "cronjobs cronjobs/status jobs jobs/status"),
        _may(
            READ,
            EXTENSIONS,
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
        ),
        _may(READ, POLICY, "poddisruptionbudgets poddisruptionbudgets/status"),
        _may(READ, NETWORKING, "ingresses ingresses/status networkpolicies"),
        _may(READ, DEVICES, "resourceclaims resourceclaims/status resourceclaimtemplates"),
    ),
    "system:node": (
        _may("create", AUTHENTICATION, "tokenreviews"),
        _may("create", AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews"),
        _may(READ, CORE, "services"),
        _may(f"create {READ}", CORE, "nodes"),
        _may("patch update", CORE, "nodes/status"),
        _may("patch update", CORE, "nodes"),
        _may("create patch update", CORE, "events"),
        _may(READ, CORE, "pods"),
        _may("create delete", CORE, "pods"),
        _may("patch update", CORE, "pods/status"),
        _may("create", CORE, "pods/eviction"),
        _may(READ, CORE, "configmaps secrets"),
        _may("get", CORE, "persistentvolumeclaims persistentvolumes"),
        _may("get", CORE, "endpoints"),
        _may(f"create {READ}", CERTIFICATES, "certificatesigningrequests"),
        _may("create delete get patch update", COORDINATION, "leases"),
        _may("get", STORAGE, "volumeattachments"),
        _may("get patch update", CORE, "persistentvolumeclaims/status"),
        _may("create", CORE, "serviceaccounts/token"),
        _may(READ, STORAGE, "csidrivers"),
        _may("create delete get patch update", STORAGE, "csinodes"),
        _may(READ, "node.k8s.io", "runtimeclasses"),
    ),
    "system:node-proxier": (
        _may("list watch", CORE, "endpoints services"),
        _may(READ, CORE, "nodes"),
        _EVENTS,
        _may("list watch", DISCOVERY, "endpointslices"),
    ),
    "system:node-problem-detector": (
        _may("get", CORE, "nodes"),
        _may("patch", CORE, "nodes/status"),
        _EVENTS,
    ),
    "system:kubelet-api-admin": (
        _may(READ, CORE, "nodes"),
        _may("proxy", CORE, "nodes"),
        _may("*", CORE, "nodes/log nodes/metrics nodes/proxy nodes/stats"),
    ),
    "system:node-bootstrapper": (_may(f"create {READ}", CERTIFICATES, "certificatesigningrequests"),),
    "system:auth-delegator": _REVIEWS,
    "system:kube-aggregator": (_may(READ, CORE, "endpoints services"),),
    "system:kube-controller-manager": (
        _EVENTS,
        *_elected("kube-controller-manager"),
        _may("create", CORE, "secrets serviceaccounts"),
        _may("delete", CORE, "secrets"),
        _may("get", CORE, "configmaps namespaces secrets serviceaccounts"),
        _may("update", CORE, "secrets serviceaccounts"),
        *_REVIEWS,
        _may("list watch", "*", "*"),
        _may("create", CORE, "serviceaccounts/token"),
    ),
    "system:kube-scheduler": (
        _EVENTS,
        *_elected("kube-scheduler"),
        _may(READ, CORE, "nodes"),
        _may(f"delete {READ}", CORE, "pods"),
        _may("create", CORE, "bindings pods/binding"),
        _may("patch update", CORE, "pods/status"),
        _may(READ, CORE, "replicationcontrollers services"),
        PolicyRule(verbs=READ.split(), api_groups=[APPS, EXTENSIONS], resources=["replicasets"]),
        _may(READ, APPS, "statefulsets"),
        _may(READ, POLICY, "poddisruptionbudgets"),
        _may(READ, CORE, "persistentvolumeclaims persistentvolumes"),
        *_REVIEWS,
        _may(READ, STORAGE, "csinodes"),
        _may(READ, CORE, "namespaces"),
        _may(READ, STORAGE, "csidrivers"),
        _may(READ, STORAGE, "csistoragecapacities"),
    ),
    "system:kube-dns": (_may("list watch", CORE, "endpoints services"),),
    "system:persistent-volume-provisioner": (
        _may(f"create delete {READ}", CORE, "persistentvolumes"),
        _may(f"update {READ}", CORE, "persistentvolumeclaims"),
        _may(READ, STORAGE, "storageclasses"),
        _may("watch", CORE, "events"),
        _EVENTS,
    ),
    "system:volume-scheduler": (
        _may(f"patch update {READ}", CORE, "persistentvolumes"),
        _may(READ, STORAGE, "storageclasses"),
        _may(f"patch update {READ}", CORE, "persistentvolumeclaims"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        _may("create", CERTIFICATES, "certificatesigningrequests/nodeclient"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        _may("create", CERTIFICATES, "certificatesigningrequests/selfnodeclient"),
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": _approves("legacy-unknown"),
    "system:certificates.k8s.io:kubelet-serving-approver": _approves("kubelet-serving"),
    "system:certificates.k8s.io:kube-apiserver-client-approver": _approves("kube-apiserver-client"),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": _approves(
        "kube-apiserver-client-kubelet"
    ),
}
"""Cluster role → its rules."""

AGGREGATED = ("admin", "edit", "view")
PART_OF = {
    "edit": "admin",
    "view": "edit",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}
"""Cluster role → the aggregated role it is part of."""


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
    "system:service-account-issuer-discovery": (_group("system:serviceaccounts"),),
}
"""Binding → whom it binds to the cluster role of its name. Nodes are judged by an authorizer of their own."""


def system_roles() -> list[ClusterRole]:
    plain = [ClusterRole(metadata=_meta(name), rules=list(rules)) for name, rules in RULES.items()]
    return [*plain, *map(_aggregated, AGGREGATED)]


def _aggregated(name: str) -> ClusterRole:
    selector = LabelSelector(match_labels={AGGREGATE + name: "true"})
    return ClusterRole(
        metadata=_meta(name), aggregation_rule=AggregationRule(cluster_role_selectors=[selector])
    )


def system_bindings() -> list[ClusterRoleBinding]:
    return [
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name, labels=dict(LABELS), annotations=dict(ANNOTATIONS)),
            subjects=list(subjects),
            role_ref=RoleRef(api_group=GROUP, kind="ClusterRole", name=name),
        )
        for name, subjects in SUBJECTS.items()
    ]


def _meta(name: str) -> ObjectMeta:
    whole = PART_OF.get(name)
    labels = {**LABELS, AGGREGATE + whole: "true"} if whole else dict(LABELS)
    return ObjectMeta(name=name, labels=labels, annotations=dict(ANNOTATIONS))
