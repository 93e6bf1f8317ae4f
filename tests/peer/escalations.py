"""Attempts at more rights than one has, each by its name: who tries, and what he asks. All are refused."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from peer.server import Server
from podling.apiserver.authn.tokens import ISSUER, SigningKey

GROUP = "rbac.authorization.k8s.io"
RBAC, REVIEWS = f"/apis/{GROUP}/v1", "/apis/authorization.k8s.io/v1"
NAMESPACES = ("authz-a", "authz-b")
EVE = "authz-eve"
WRITES_ROLES = {
    "verbs": ["create", "update", "patch", "get", "list", "delete"],
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
}
READS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "configmaps"]}
NAMED = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]}
STREAMS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward"]}
HERE = f"/namespaces/{NAMESPACES[0]}"
CORE = f"/api/v1{HERE}"


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return {**made, "resourceNames": names.split()} if names else made


def role(*rules: dict[str, Any], name: str = "authz-new", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(to: str, kind: str = "ClusterRole", name: str = "authz-new", who: str = EVE) -> dict[str, Any]:
    ref = {"apiGroup": GROUP, "kind": kind, "name": to}
    subject = {"kind": "User", "name": who, "apiGroup": GROUP}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}


ROLES, BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
ROLES_HERE, BINDINGS_HERE = f"{RBAC}{HERE}/roles", f"{RBAC}{HERE}/rolebindings"
SELECTOR = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
URLS = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/x*"]}
TYPED = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole"}


class Attempt(msgspec.Struct, frozen=True):
    """Of `who`, one of PEOPLE, a node of NODES, a token of TOKENS, or nobody if it is empty. `code` is what
    refuses it."""

    who: str
    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = {}
    code: int = 403


def by_eve(
    method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None, code: int = 403
) -> Attempt:
    return Attempt(EVE, method, target, body, headers or {}, code)


OF_EVE: dict[str, Attempt] = {
    "everything": by_eve("POST", ROLES, role(ALL)),
    "everything with pods": by_eve("POST", ROLES, role(rule("*", "pods"))),
    "more than she has of what she has": by_eve("POST", ROLES, role(rule("get delete", "pods configmaps"))),
    "every resource": by_eve("POST", ROLES, role(rule("get", "*"))),
    "every name of what she has by name": by_eve("POST", ROLES, role(rule("get", "pods", "*"))),
    "every subresource of pods": by_eve("POST", ROLES, role(rule("get", "pods/*"))),
    "exec of everything": by_eve("POST", ROLES, role(rule("get", "*/exec"))),
    "secrets": by_eve("POST", ROLES, role(rule("get", "secrets"))),
    "another secret than hers": by_eve("POST", ROLES, role(rule("get", "secrets", names="mine other"))),
    "exec by create": by_eve("POST", ROLES, role(rule("create", "pods/exec"))),
    "paths nobody gave her": by_eve("POST", ROLES, role(URLS)),
    "escalate": by_eve("POST", ROLES, role(rule("escalate", "clusterroles", GROUP))),
    "bind": by_eve("POST", ROLES, role(rule("bind", "clusterroles", GROUP))),
    "impersonate": by_eve("POST", ROLES, role(rule("impersonate", "users groups serviceaccounts"))),
    "an aggregation, which takes what others write": by_eve(
        "POST", ROLES, role(READS, aggregationRule=SELECTOR)
    ),
    "everything, tried dry": by_eve("POST", f"{ROLES}?dryRun=All", role(ALL)),
    "secrets of a namespace": by_eve("POST", ROLES_HERE, role(rule("get", "secrets"))),
    "everything of a namespace": by_eve("POST", ROLES_HERE, role(ALL)),
    "everything by PUT": by_eve("PUT", f"{ROLES}/authz-new", role(ALL)),
    "everything by apply": by_eve(
        "PATCH", f"{ROLES}/authz-new?fieldManager=e", role(ALL, **TYPED), {"Content_Type": APPLY}
    ),
    "more for cluster-admin": by_eve(
        "PATCH", f"{ROLES}/cluster-admin", {"rules": [ALL]}, {"Content_Type": MERGE}
    ),
    "more for her own role": by_eve("PATCH", f"{ROLES}/authz-eve", {"rules": [ALL]}, {"Content_Type": MERGE}),
    "cluster-admin": by_eve("POST", BINDINGS, binding("cluster-admin")),
    "the role of nodes": by_eve("POST", BINDINGS, binding("system:node")),
    "a role that is not there yet": by_eve("POST", BINDINGS, binding("not-there"), code=404),
    "cluster-admin in a namespace": by_eve("POST", BINDINGS_HERE, binding("cluster-admin")),
    "a role of a namespace that is not there yet": by_eve(
        "POST", BINDINGS_HERE, binding("not-there", "Role"), code=404
    ),
    "a stronger role of a namespace": by_eve("POST", BINDINGS_HERE, binding("authz-strong", "Role")),
    "cluster-admin by PUT": by_eve("PUT", f"{BINDINGS}/authz-new", binding("cluster-admin")),
    "cluster-admin, in the binding that is there": by_eve(
        "PATCH", f"{BINDINGS}/cluster-admin", {"subjects": []}, {"Content_Type": MERGE}
    ),
    "all secrets": by_eve("GET", f"{CORE}/secrets"),
    "a secret that is not hers": by_eve("GET", f"{CORE}/secrets/other"),
    "all secrets, by the name of hers": by_eve("GET", f"{CORE}/secrets?fieldSelector=metadata.name%3Dmine"),
    "exec by GET": by_eve("GET", f"{CORE}/pods/x/exec?command=a"),
    "attach by GET": by_eve("GET", f"{CORE}/pods/x/attach"),
    "port-forward by GET": by_eve("GET", f"{CORE}/pods/x/portforward"),
    "exec by POST": by_eve("POST", f"{CORE}/pods/x/exec?command=a"),
    "the log, as a name": by_eve("GET", f"{CORE}/pods/x%2Flog"),
    "the log": by_eve("GET", f"{CORE}/pods/x/log"),
    "secrets by the older watch": by_eve("GET", "/api/v1/watch/secrets"),
    "a secret by the older watch": by_eve("GET", f"/api/v1/watch{HERE}/secrets/other"),
    "secrets, by an empty part of a path": by_eve("GET", f"/api/v1{HERE}//secrets"),
    "metrics": by_eve("GET", "/metrics"),
    "profiles": by_eve("GET", "/debug/pprof/"),
    "all pods are deleted": by_eve("DELETE", f"{CORE}/pods"),
    "an ephemeral container by PUT": by_eve("PUT", f"{CORE}/pods/x/ephemeralcontainers", {}),
    "a token of an account": by_eve("POST", f"{CORE}/serviceaccounts/default/token", {}),
    "what others may": by_eve("POST", f"{REVIEWS}/subjectaccessreviews", {}),
    "what others may here": by_eve("POST", f"{REVIEWS}{HERE}/localsubjectaccessreviews", {}),
    "whose a token is": by_eve("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}),
    "a kubelet through the API server": by_eve("GET", "/api/v1/nodes/n/proxy/"),
    "a certificate": by_eve("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {}),
    "an approval": by_eve("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", {}),
    "the status of a node": by_eve("PUT", "/api/v1/nodes/n/status", {}),
    "an eviction": by_eve("POST", f"{CORE}/pods/x/eviction", {}),
    "a binding of a pod": by_eve("POST", f"{CORE}/pods/x/binding", {}),
    "the end of a namespace": by_eve("PUT", f"/api/v1{HERE}/finalize", {}),
    "a namespace": by_eve("POST", "/api/v1/namespaces", {}),
    "volumes": by_eve("GET", "/api/v1/persistentvolumes"),
    "a webhook": by_eve("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {}),
    "a flow schema": by_eve("POST", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", {}),
    "a storage class": by_eve("POST", "/apis/storage.k8s.io/v1/storageclasses", {}),
}
"""What a user who may write roles, and holds few rights, tries in order to have more."""


def make_eve(server: Server) -> None:
    """She writes roles, and has READS, NAMED and STREAMS to give away."""
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACES[0]}})
    rules = (WRITES_ROLES, READS, NAMED, STREAMS)
    for path, body in (
        (ROLES, role(*rules, name="authz-eve")),
        (BINDINGS, binding("authz-eve", name="authz-eve")),
        (ROLES_HERE, role(rule("*", "secrets"), name="authz-strong")),
    ):
        assert server.ask("POST", path, body).code == 201


HOME, CLOSED, FAR = "escalations", "escalations-closed", "escalations-far"
AT_HOME, AT_CLOSED, AT_FAR = (f"/api/v1/namespaces/{name}" for name in (HOME, CLOSED, FAR))
N1, N2 = "escalations-n1", "escalations-n2"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES, CSI_NODES = (
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    "/apis/storage.k8s.io/v1/csinodes",
)
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{HOME}/resourceclaims"
POLICIES = "/apis/networking.k8s.io/v1/networkpolicies"
STRATEGIC = {"Content_Type": "application/strategic-merge-patch+json"}
MERGED = {"Content_Type": MERGE}
APPLIED = {"Content_Type": APPLY}
RESTRICTED: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
PEOPLE: Mapping[str, Sequence[dict[str, Any]]] = {
    "nobody-special": [],
    "binder": [
        rule("create update patch", "rolebindings clusterrolebindings", GROUP),
        rule("bind", "clusterroles", GROUP, "view"),
    ],
    "escalator": [
        rule("create update patch get", "clusterroles", GROUP),
        rule("escalate", "clusterroles", GROUP, "escalations-own"),
    ],
    "keyholder": [rule("get list watch", "secrets", names="own")],
    "holder-of-no-name": [
        {**rule("get list", "secrets"), "resourceNames": [""]},
        rule("create", "clusterroles clusterrolebindings", GROUP),
    ],
    "actor": [rule("impersonate", "users", names="jane")],
    "group-actor": [rule("impersonate", "users", names="jane"), rule("impersonate", "groups", names="devs")],
    "clerk": [
        rule("create get list update patch", "certificatesigningrequests", "certificates.k8s.io"),
        rule("update patch", "certificatesigningrequests/approval", "certificates.k8s.io"),
        rule("update patch", "certificatesigningrequests/status", "certificates.k8s.io"),
        rule("approve sign", "signers", "certificates.k8s.io", "example.com/own"),
    ],
    "developer": [
        rule("create get list update patch delete", "pods"),
        rule("get update patch", "pods/ephemeralcontainers pods/resize"),
        rule("create get update patch", "deployments", "apps"),
    ],
    "updater": [rule("get list update patch", "pods"), rule("get update patch", "deployments", "apps")],
    "reporter": [rule("get update patch", "pods/status nodes/status")],
    "reader": [
        rule("get list watch", "pods"),
        {"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]},
    ],
    "inspector": [rule("get", "nodes nodes/metrics services pods")],
    "accountant": [rule("create", "serviceaccounts/token", names="plain")],
    "registrar": [rule("create", "serviceaccounts secrets configmaps")],
}
"""Users that are in a group of their name, and what that may everywhere."""
NODES: Mapping[str, Sequence[str]] = {N1: (f"system:node:{N1}", "system:nodes")}
"""User and group."""


def pod(
    name: str, node: str = "", *, container: Mapping[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    where = {"nodeName": node} if node else {}
    whole = {"name": "c", "image": "i", **(container or {})}
    return {
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": False, **where, "containers": [whole], **spec},
    }


def refers(name: str) -> dict[str, Any]:
    """What a pod of an account of that name reads."""
    volumes: list[dict[str, Any]] = [
        {"name": "s", "secret": {"secretName": name}},
        {"name": "m", "configMap": {"name": name}},
        {"name": "v", "persistentVolumeClaim": {"claimName": name}},
    ]
    return {"serviceAccountName": name, "volumes": volumes}


def claim(name: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": name,
    }
    return {"metadata": {"name": name}, "spec": spec}


def volume(name: str) -> dict[str, Any]:
    ref = {"namespace": HOME, "name": name}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return {"metadata": {"name": name}, "spec": {**spec, "claimRef": ref}}


def signing(signer: str, common_name: str, *groups: str, name: str = "escalations-new") -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group) for group in groups]
    names.append(x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name))
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    sent = b64encode(made.public_bytes(Encoding.PEM)).decode()
    usage = "server auth" if signer.endswith("serving") else "client auth"
    spec = {"request": sent, "signerName": signer, "usages": ["digital signature", usage]}
    return {"metadata": {"name": name}, "spec": spec}


CLIENT, KUBELET, SERVING = (
    f"kubernetes.io/{name}"
    for name in ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving")
)
WORLD: Sequence[tuple[str, Any]] = [
    ("/api/v1/namespaces", {"metadata": {"name": HOME}}),
    ("/api/v1/namespaces", {"metadata": {"name": FAR}}),
    (
        "/api/v1/namespaces",
        {"metadata": {"name": CLOSED, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    ),
    ("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}}),
    *(
        (f"{where}/serviceaccounts", {"metadata": {"name": "default"}})
        for where in (AT_HOME, AT_CLOSED, AT_FAR)
    ),
    *(("/api/v1/nodes", {"metadata": {"name": name}}) for name in (N1, N2)),
    *((LEASES, {"metadata": {"name": name}, "spec": {}}) for name in (N1, N2)),
    *((CSI_NODES, {"metadata": {"name": name}, "spec": {"drivers": []}}) for name in (N1, N2)),
    *(
        one
        for name in ("own", "other")
        for one in (
            (f"{AT_HOME}/secrets", {"metadata": {"name": name}}),
            (f"{AT_HOME}/configmaps", {"metadata": {"name": name}}),
            ("/api/v1/persistentvolumes", volume(name)),
            (f"{AT_HOME}/persistentvolumeclaims", claim(name)),
            (f"{AT_HOME}/serviceaccounts", {"metadata": {"name": name}}),
        )
    ),
    (f"{AT_HOME}/pods", pod("own", N1, **refers("own"))),
    (f"{AT_HOME}/pods", pod("other", N2, **refers("other"))),
    (f"{AT_HOME}/pods", pod("gone", N1, serviceAccountName="own")),
    (f"{AT_CLOSED}/pods", pod("p", N1, container={"securityContext": RESTRICTED})),
    (REQUESTS, signing(CLIENT, "somebody", name="escalations")),
    (REQUESTS, signing("example.com/own", "somebody", name="escalations-own")),
    (
        f"{AT_HOME}/serviceaccounts",
        {
            "metadata": {
                "name": "bound",
                "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"},
            }
        },
    ),
]
"""What there is, and where it is made."""


class Side(NamedTuple):
    """A server, and the key by which it signs tokens of accounts."""

    server: Server
    key: SigningKey

    def uid(self, path: str) -> str:
        found: str = self.server.ask("GET", path).body["metadata"]["uid"]
        return found

    def requested(self, spec: Any) -> str:
        said = self.server.ask("POST", f"{AT_HOME}/serviceaccounts/own/token", {"spec": spec})
        token: str = said.body["status"]["token"]
        return token

    def claims(self, **changed: Any) -> bytes:
        """Of a good token of the account `own`, but for what is changed."""
        now = int(time.time())
        account = {"name": "own", "uid": self.uid(f"{AT_HOME}/serviceaccounts/own")}
        good = {
            "aud": [ISSUER],
            "exp": now + 3600,
            "iat": now,
            "iss": ISSUER,
            "jti": "11111111-1111-1111-1111-111111111111",
            "kubernetes.io": {"namespace": HOME, "serviceaccount": account},
            "nbf": now,
            "sub": f"system:serviceaccount:{HOME}:own",
        }
        return json.dumps({**good, **changed}).encode()

    def signed(self, **changed: Any) -> str:
        return self.key.sign(self.claims(**changed))


def _unsigned(side: Side) -> str:
    head = b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).decode().rstrip("=")
    return f"{head}.{b64encode(side.claims()).decode().rstrip('=')}."


def _of_a_pod_that_is_gone(side: Side) -> str:
    uid = side.uid(f"{AT_HOME}/pods/gone")
    token = side.requested(
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone", "uid": uid}}
    )
    side.server.ask("DELETE", f"{AT_HOME}/pods/gone", {"gracePeriodSeconds": 0})
    return token


GONE = {"namespace": HOME, "serviceaccount": {"name": "gone", "uid": "7"}}
ANOTHER = {"namespace": HOME, "serviceaccount": {"name": "other", "uid": "7"}}
TOKENS: Mapping[str, Callable[[Side], str]] = {
    "of an account": lambda side: side.requested({}),
    "for another audience": lambda side: side.requested({"audiences": ["vault"]}),
    "of a pod that is gone": _of_a_pod_that_is_gone,
    "expired": lambda side: side.signed(exp=int(time.time()) - 3600),
    "not yet valid": lambda side: side.signed(nbf=int(time.time()) + 3600),
    "forged": lambda side: SigningKey.made().sign(side.claims()),
    "unsigned": _unsigned,
    "of another issuer": lambda side: side.signed(iss="https://other"),
    "of an account that is gone": lambda side: side.signed(**{"kubernetes.io": GONE}),
    "of another account by name": lambda side: side.signed(**{"kubernetes.io": ANOTHER}),
    "tampered": lambda side: side.signed()[:-8] + "AAAAAAAA",
    "of nothing": lambda side: "nonsense",
}
"""Of the account `own`, if nothing else is said."""


def of(who: str, attempts: Mapping[str, Sequence[Any]]) -> dict[str, Attempt]:
    """Of each name the rest of an Attempt."""
    return {f"{who}: {name}": Attempt(who, *rest) for name, rest in attempts.items()}


def acting(user: str, **more: str) -> dict[str, str]:
    return {"Impersonate_User": user, **more}


def owner(name: str, uid: str = "7") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}


def mirror(node: str, **spec: Any) -> dict[str, Any]:
    made = pod("mirror", node, **spec)
    made["metadata"] |= {
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "ownerReferences": [owner(node)],
    }
    return made


def debugging(**rights: Any) -> dict[str, Any]:
    context = {"securityContext": rights} if rights else {}
    return {"spec": {"ephemeralContainers": [{"name": "debug", "image": "i", **context}]}}


def labelled(*labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": dict.fromkeys(labels, "x")}}


PODS = f"{AT_HOME}/pods"
SECRET = f"{AT_HOME}/secrets/other"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
PROXIED = {"X_Remote_User": "admin", "X_Remote_Group": "system:masters"}
OWN_ROLE = role(ALL, name="escalations-mine")
TO_EDIT = {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}
OWN_REQUEST, ANOTHERS_REQUEST = f"{REQUESTS}/escalations-own", f"{REQUESTS}/escalations"
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}}
KEY, NOW = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")])
CERTIFICATE = (
    x509.CertificateBuilder(NAME, NAME, KEY.public_key(), 1, NOW, NOW + timedelta(days=1))
    .sign(KEY, hashes.SHA256())
    .public_bytes(Encoding.PEM)
)
ISSUED = {"status": {"certificate": b64encode(CERTIFICATE).decode()}}

WITH_ROLES = {
    **of(
        "binder",
        {
            "a stronger role than she may bind": ("POST", BINDINGS, binding("cluster-admin")),
            "a stronger role in a namespace": (
                "POST",
                f"{RBAC}/namespaces/{FAR}/rolebindings",
                binding("cluster-admin"),
            ),
            "a role of the namespace": ("POST", BINDINGS_HERE, binding("authz-strong", "Role")),
            "another subject of a binding": (
                "PATCH",
                f"{BINDINGS}/cluster-admin",
                binding("cluster-admin", name="cluster-admin"),
                MERGED,
            ),
            "the masters' binding by apply": (
                "PATCH",
                f"{BINDINGS}/escalations?fieldManager=m",
                {
                    "apiVersion": f"{GROUP}/v1",
                    "kind": "ClusterRoleBinding",
                    **binding("cluster-admin", name="escalations"),
                },
                APPLIED,
            ),
            "bindings are deleted": ("DELETE", BINDINGS),
        },
    ),
    **of(
        "escalator",
        {
            "another role than his own": ("POST", ROLES, OWN_ROLE),
            "edit": ("PATCH", f"{ROLES}/edit", {"rules": [ALL]}, MERGED),
            "a part of edit": (
                "POST",
                ROLES,
                {"metadata": {"name": "escalations-part", "labels": TO_EDIT}, "rules": [ALL]},
            ),
            "a binding": ("POST", BINDINGS, binding("view")),
        },
    ),
}
BY_NAME = {
    **of(
        "keyholder",
        {
            "another secret": ("GET", SECRET),
            "all secrets": ("GET", f"{AT_HOME}/secrets"),
            "another, by its name": ("GET", f"{AT_HOME}/secrets?fieldSelector=metadata.name%3Dother"),
            "all but one": ("GET", f"{AT_HOME}/secrets?fieldSelector=metadata.name!%3Dother"),
            "all, and hers last": (
                "GET",
                f"{AT_HOME}/secrets?fieldSelector=&fieldSelector=metadata.name%3Down",
            ),
            "all by label": ("GET", f"{AT_HOME}/secrets?labelSelector=metadata.name%3Down"),
            "a watch of all": ("GET", f"{AT_HOME}/secrets?watch=1"),
            "a watch of another": (
                "GET",
                f"{AT_HOME}/secrets?watch=1&fieldSelector=metadata.name%3Dother",
            ),
            "hers is deleted with all": (
                "DELETE",
                f"{AT_HOME}/secrets?fieldSelector=metadata.name%3Down",
            ),
        },
    ),
    **of(
        "holder-of-no-name",
        {
            "a secret": ("GET", SECRET),
            "a role that reads them all": (
                "POST",
                ROLES,
                role(rule("get list", "secrets"), name="escalations-all"),
            ),
            "the role of who reads hers": ("POST", BINDINGS, binding("escalations-keyholder")),
        },
    ),
}
ACTING = {
    **of(
        "nobody-special",
        {
            "as a user": ("POST", WHO_AM_I, {}, acting("jane")),
            "as an administrator": (
                "GET",
                SECRET,
                None,
                acting("kubernetes-admin", Impersonate_Group="system:masters"),
            ),
            "as nobody": ("POST", WHO_AM_I, {}, acting("system:anonymous")),
            "as an account": ("POST", WHO_AM_I, {}, acting(f"system:serviceaccount:{HOME}:own")),
            "as a node": (
                "POST",
                WHO_AM_I,
                {},
                acting(f"system:node:{N1}", Impersonate_Group="system:nodes"),
            ),
            "as the network of a node": (
                "POST",
                WHO_AM_I,
                {},
                acting(f"podling:node:{N1}", Impersonate_Group="podling:nodes"),
            ),
            "as the controllers": ("GET", SECRET, None, acting("system:kube-controller-manager")),
            "with the headers of a proxy": ("GET", SECRET, None, PROXIED),
        },
    ),
    **of(
        "actor",
        {
            "as another than he may": ("POST", WHO_AM_I, {}, acting("joe")),
            "in a group": ("POST", WHO_AM_I, {}, acting("jane", Impersonate_Group="devs")),
            "in the group of masters": (
                "POST",
                WHO_AM_I,
                {},
                acting("jane", Impersonate_Group="system:masters"),
            ),
            "with a uid": ("POST", WHO_AM_I, {}, acting("jane", Impersonate_Uid="7")),
            "with extra": ("POST", WHO_AM_I, {}, acting("jane", Impersonate_Extra_scopes="all")),
            "with the extra of a pod": (
                "POST",
                WHO_AM_I,
                {},
                acting("jane", **{"Impersonate_Extra_authentication.kubernetes.io%2Fpod-name": "other"}),
            ),
            "as an account": ("POST", WHO_AM_I, {}, acting(f"system:serviceaccount:{HOME}:own")),
            "as a node": ("POST", WHO_AM_I, {}, acting(f"system:node:{N1}")),
            "what jane may not": ("GET", SECRET, None, acting("jane")),
        },
    ),
    **of(
        "group-actor",
        {
            "in another group": ("POST", WHO_AM_I, {}, acting("jane", Impersonate_Group="ops")),
            "in the group of nodes": ("POST", WHO_AM_I, {}, acting("jane", Impersonate_Group="system:nodes")),
            "in no group": ("POST", WHO_AM_I, {}, acting("jane", Impersonate_Group="")),
        },
    ),
    **of(
        "",
        {
            "as an administrator": (
                "GET",
                SECRET,
                None,
                acting("kubernetes-admin", Impersonate_Group="system:masters"),
            ),
            "with the headers of a proxy": ("GET", SECRET, None, PROXIED),
            "a secret": ("GET", SECRET),
            "a pod": ("POST", PODS, pod("new")),
            "metrics": ("GET", "/metrics"),
            "exec": ("POST", f"{PODS}/own/exec?command=sh"),
            "a password": ("GET", SECRET, None, {"Authorization": "Basic YWRtaW46YWRtaW4="}),
        },
    ),
}
NODES_OWN = of(
    N1,
    {
        "a secret of another node": ("GET", SECRET),
        "a config map of another node": ("GET", f"{AT_HOME}/configmaps/other"),
        "a claim of another node": ("GET", f"{AT_HOME}/persistentvolumeclaims/other"),
        "a volume of another node": ("GET", "/api/v1/persistentvolumes/other"),
        "a claim of devices": ("GET", f"{CLAIMS}/other"),
        "all secrets": ("GET", "/api/v1/secrets"),
        "all secrets of a namespace": ("GET", f"{AT_HOME}/secrets"),
        "a watch of a secret of another node": (
            "GET",
            f"{AT_HOME}/secrets?watch=1&fieldSelector=metadata.name%3Dother",
        ),
        "a secret is written": ("PATCH", f"{AT_HOME}/secrets/own", {"data": {}}, MERGED),
        "all pods": ("GET", "/api/v1/pods"),
        "the pods of another node": ("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{N2}"),
        "a pod of another node": ("GET", f"{PODS}/other"),
        "all namespaces": ("GET", "/api/v1/namespaces"),
        "all policies": ("GET", POLICIES),
        "all nodes": ("GET", "/api/v1/nodes"),
        "another node": ("GET", f"/api/v1/nodes/{N2}"),
        "another node is written": ("PATCH", f"/api/v1/nodes/{N2}", labelled("a"), MERGED),
        "the status of another node": ("PATCH", f"/api/v1/nodes/{N2}/status", labelled("a"), MERGED),
        "its own Node is removed": ("DELETE", f"/api/v1/nodes/{N1}"),
        "another Node is removed": ("DELETE", f"/api/v1/nodes/{N2}"),
        "a label that steers pods": (
            "PATCH",
            f"/api/v1/nodes/{N1}",
            labelled("node-restriction.kubernetes.io/a"),
            MERGED,
        ),
        "a label that steers pods, by its status": (
            "PATCH",
            f"/api/v1/nodes/{N1}/status",
            labelled("node-restriction.kubernetes.io/a"),
            MERGED,
        ),
        "a taint": (
            "PATCH",
            f"/api/v1/nodes/{N1}",
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            MERGED,
        ),
        "an owner of its Node": (
            "PATCH",
            f"/api/v1/nodes/{N1}",
            {"metadata": {"ownerReferences": [owner(N2)]}},
            MERGED,
        ),
        "a pod that is no mirror": ("POST", PODS, pod("new", N1)),
        "a mirror of another node": ("POST", PODS, mirror(N2)),
        "a mirror that reads a secret": (
            "POST",
            PODS,
            mirror(N1, volumes=[{"name": "s", "secret": {"secretName": "other"}}]),
        ),
        "a mirror with an account": ("POST", PODS, mirror(N1, serviceAccountName="other")),
        "the status of a pod of another node": (
            "PATCH",
            f"{PODS}/other/status",
            {"status": {"message": "x"}},
            MERGED,
        ),
        "labels of its own pod": ("PATCH", f"{PODS}/own/status", labelled("a"), MERGED),
        "a pod of another node is deleted": ("DELETE", f"{PODS}/other"),
        "a pod of another node is evicted": (
            "POST",
            f"{PODS}/other/eviction",
            {"metadata": {"name": "other"}},
        ),
        "a pod is bound": (
            "POST",
            f"{PODS}/own/binding",
            {"metadata": {"name": "own"}, "target": {"name": N1}},
        ),
        "exec in its own pod": ("POST", f"{PODS}/own/exec?command=sh"),
        "an ephemeral container": ("PATCH", f"{PODS}/own/ephemeralcontainers", debugging(), STRATEGIC),
        "a token of another node's account": ("POST", f"{AT_HOME}/serviceaccounts/other/token", {"spec": {}}),
        "a token that is bound to no pod": ("POST", f"{AT_HOME}/serviceaccounts/own/token", {"spec": {}}),
        "the lease of another node": ("PATCH", f"{LEASES}/{N2}", labelled("a"), MERGED),
        "the CSINode of another node": ("PATCH", f"{CSI_NODES}/{N2}", labelled("a"), MERGED),
        "a certificate of another node": (
            "POST",
            REQUESTS,
            signing(KUBELET, f"system:node:{N2}", "system:nodes"),
        ),
        "a server's certificate of another node": (
            "POST",
            REQUESTS,
            signing(SERVING, f"system:node:{N2}", "system:nodes"),
        ),
        "a certificate of masters": (
            "POST",
            REQUESTS,
            signing(CLIENT, f"podling:node:{N1}", "podling:nodes", "system:masters"),
        ),
        "an approval": ("PUT", f"{ANOTHERS_REQUEST}/approval", {}),
        "another kubelet": ("GET", f"/api/v1/nodes/{N2}/proxy/pods"),
        "as its own network": (
            "GET",
            POLICIES,
            None,
            acting(f"podling:node:{N1}", Impersonate_Group="podling:nodes"),
        ),
    },
)
WITH_TOKENS = {
    **of(
        "of an account",
        {
            "a secret": ("GET", SECRET),
            "itself elsewhere": ("GET", f"{AT_FAR}/serviceaccounts/default"),
            "a token of itself": ("POST", f"{AT_HOME}/serviceaccounts/own/token", {"spec": {}}),
            "as another account": ("POST", WHO_AM_I, {}, acting(f"system:serviceaccount:{HOME}:other")),
        },
    ),
    **{
        f"a token {name}": Attempt(name, "POST", WHO_AM_I, {}, code=401)
        for name in TOKENS
        if name != "of an account"
    },
}
CERTIFICATES = of(
    "clerk",
    {
        "a certificate of masters": ("POST", REQUESTS, signing(CLIENT, "me", "system:masters")),
        "a certificate of masters among others": (
            "POST",
            REQUESTS,
            signing(CLIENT, "me", "devs", "system:masters"),
        ),
        "an approval for another signer": ("PATCH", f"{ANOTHERS_REQUEST}/approval", APPROVED, MERGED),
        "a certificate for another signer": ("PATCH", f"{ANOTHERS_REQUEST}/status", ISSUED, MERGED),
        "a request is deleted": ("DELETE", ANOTHERS_REQUEST),
    },
)
CLOSED_PODS, CLOSED_POD = f"{AT_CLOSED}/pods", f"{AT_CLOSED}/pods/p"
WITH_PODS = {
    **of(
        "developer",
        {
            "a privileged pod": (
                "POST",
                CLOSED_PODS,
                pod("new", container={"securityContext": {"privileged": True}}),
            ),
            "a pod that may be root": ("POST", CLOSED_PODS, pod("new")),
            "a pod of the host's processes": (
                "POST",
                CLOSED_PODS,
                pod("new", container={"securityContext": RESTRICTED}, hostPID=True),
            ),
            "a pod of the host's network": (
                "POST",
                CLOSED_PODS,
                pod("new", container={"securityContext": RESTRICTED}, hostNetwork=True),
            ),
            "a pod of the host's files": (
                "POST",
                CLOSED_PODS,
                pod(
                    "new",
                    container={"securityContext": RESTRICTED},
                    volumes=[{"name": "h", "hostPath": {"path": "/"}}],
                ),
            ),
            "a port of the host": (
                "POST",
                CLOSED_PODS,
                pod(
                    "new",
                    container={"securityContext": RESTRICTED, "ports": [{"containerPort": 1, "hostPort": 1}]},
                ),
            ),
            "a privileged pod, tried dry": (
                "POST",
                f"{CLOSED_PODS}?dryRun=All",
                pod("new", container={"securityContext": {"privileged": True}}),
            ),
            "a privileged pod by apply": (
                "PATCH",
                f"{CLOSED_PODS}/new?fieldManager=m",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    **pod("new", container={"securityContext": {"privileged": True}}),
                },
                APPLIED,
            ),
            "a privileged ephemeral container": (
                "PATCH",
                f"{CLOSED_POD}/ephemeralcontainers",
                debugging(privileged=True),
                STRATEGIC,
            ),
            "an ephemeral container that may be root": (
                "PATCH",
                f"{CLOSED_POD}/ephemeralcontainers",
                debugging(),
                STRATEGIC,
            ),
            "an ephemeral container that traces": (
                "PATCH",
                f"{CLOSED_POD}/ephemeralcontainers",
                debugging(**{**RESTRICTED, "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}),
                STRATEGIC,
            ),
            "the level of a namespace": (
                "PATCH",
                AT_CLOSED,
                labelled("pod-security.kubernetes.io/enforce"),
                MERGED,
            ),
            "an ephemeral container as part of the pod": (
                "PATCH",
                f"{PODS}/own",
                debugging(),
                STRATEGIC,
                422,
            ),
            "another account of a pod": (
                "PATCH",
                f"{PODS}/own",
                {"spec": {"serviceAccountName": "other"}},
                MERGED,
                422,
            ),
            "the node of a pod": ("PATCH", f"{PODS}/own", {"spec": {"nodeName": N2}}, MERGED, 422),
            "privilege for a pod that runs": (
                "PATCH",
                f"{PODS}/own",
                {"spec": {"containers": [{"name": "c", "securityContext": {"privileged": True}}]}},
                STRATEGIC,
                422,
            ),
            "an account that is not there": ("POST", PODS, pod("new", serviceAccountName="nobody")),
            "a secret that its account may not mount": (
                "POST",
                PODS,
                pod(
                    "new",
                    serviceAccountName="bound",
                    volumes=[{"name": "s", "secret": {"secretName": "other"}}],
                ),
            ),
            "a runtime that is not there": ("POST", PODS, pod("new", runtimeClassName="nobody")),
            "a priority that is not there": ("POST", PODS, pod("new", priorityClassName="nobody")),
            "a priority by number": ("POST", PODS, pod("new", priority=2000000000)),
            "a pod elsewhere by its body": (
                "POST",
                PODS,
                {**pod("new"), "metadata": {"name": "new", "namespace": "kube-system"}},
                {},
                400,
            ),
            "a mirror pod with a secret": (
                "POST",
                PODS,
                mirror(N1, volumes=[{"name": "s", "secret": {"secretName": "other"}}]),
            ),
        },
    ),
    **of(
        "updater",
        {
            "an ephemeral container": ("PATCH", f"{PODS}/own/ephemeralcontainers", debugging(), STRATEGIC),
            "an ephemeral container by PUT": ("PUT", f"{PODS}/own/ephemeralcontainers", pod("own")),
            "a resize": ("PATCH", f"{PODS}/own/resize", {"spec": {}}, STRATEGIC),
            "a status": ("PATCH", f"{PODS}/own/status", {"status": {"phase": "Failed"}}, MERGED),
            "a binding": ("POST", f"{PODS}/own/binding", {"target": {"name": N2}}),
            "a binding by the older way": (
                "POST",
                f"{AT_HOME}/bindings",
                {"metadata": {"name": "own"}, "target": {"name": N2}},
            ),
            "an eviction": ("POST", f"{PODS}/own/eviction", {"metadata": {"name": "own"}}),
            "exec by GET": ("GET", f"{PODS}/own/exec?command=sh"),
            "attach by GET": ("GET", f"{PODS}/own/attach"),
            "a port by GET": ("GET", f"{PODS}/own/portforward?ports=80"),
            "a proxy": ("GET", f"{PODS}/own:80/proxy/"),
            "logs": ("GET", f"{PODS}/own/log"),
            "a pod": ("POST", PODS, pod("new")),
            "a pod by apply": (
                "PATCH",
                f"{PODS}/applied?fieldManager=m",
                {"apiVersion": "v1", "kind": "Pod", **pod("applied")},
                APPLIED,
            ),
            "a scale": (
                "PATCH",
                f"/apis/apps/v1/namespaces/{HOME}/deployments/d/scale",
                {"spec": {"replicas": 9}},
                MERGED,
            ),
            "a deployment by PUT": (
                "PUT",
                f"/apis/apps/v1/namespaces/{HOME}/deployments/d/status",
                {"metadata": {"name": "d"}},
            ),
        },
    ),
    **of(
        "reporter",
        {
            "the spec of a pod": ("PATCH", f"{PODS}/own", {"spec": {"activeDeadlineSeconds": 1}}, MERGED),
            "a label of a node": ("PATCH", f"/api/v1/nodes/{N1}", labelled("a"), MERGED),
            "a pod is deleted": ("DELETE", f"{PODS}/own"),
        },
    ),
    **of(
        "inspector",
        {
            "a kubelet": ("GET", f"/api/v1/nodes/{N1}/proxy/pods"),
            "a kubelet by its port": ("GET", f"/api/v1/nodes/{N1}:10250/proxy/run/x/y/c?cmd=id"),
            "a kubelet by https": ("GET", f"/api/v1/nodes/https:{N1}:10250/proxy/"),
            "a kubelet by POST": ("POST", f"/api/v1/nodes/{N1}/proxy/exec/x/y/c"),
            "a service": ("GET", f"{AT_HOME}/services/https:own:443/proxy/"),
            "a pod": ("GET", f"{PODS}/own:80/proxy/"),
            "a log": ("GET", f"{PODS}/own/log"),
        },
    ),
    **of(
        "accountant",
        {
            "a token of another account": ("POST", f"{AT_HOME}/serviceaccounts/other/token", {"spec": {}}),
            "a token of kube-system": (
                "POST",
                "/api/v1/namespaces/kube-system/serviceaccounts/default/token",
                {"spec": {}},
            ),
        },
    ),
    **of(
        "registrar",
        {
            "an account with a role": ("POST", BINDINGS, binding("view")),
            "a policy": ("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", {}),
            "an API service": ("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {}),
            "a kind of its own": ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {}),
            "a secret is read": ("GET", SECRET),
            "a namespace is ended": ("DELETE", AT_FAR),
        },
    ),
}
PATHS = of(
    "reader",
    {
        name: ("GET", target, None, {}, 404 if target.startswith("/healthz") else 403)
        for name, target in {
            "a secret behind a pod": f"{PODS}/own/../../secrets/other",
            "a secret behind an escaped slash": f"{PODS}/..%2Fsecrets%2Fother",
            "a secret behind escaped dots": f"{PODS}/%2e%2e/secrets/other",
            "a secret by two slashes": f"{AT_HOME}//secrets/other",
            "a secret by an escape": f"{AT_HOME}/%73ecrets/other",
            "a secret by an escape of an escape": f"{AT_HOME}/pods%2F..%2Fsecrets",
            "a secret in capitals": f"{AT_HOME}/Secrets/other",
            "a secret behind a health check": "/healthz/../api/v1/secrets",
            "a secret behind an escaped health check": "/healthz/..%2F..%2Fapi/v1/secrets",
            "a secret in another version": f"/api/v2/namespaces/{HOME}/secrets/other",
            "a secret of another group": f"/apis/apps/v1/namespaces/{HOME}/secrets/other",
            "a secret behind a namespace": f"/api/v1/namespaces/{HOME}%2Fsecrets/other",
            "a secret by the older watch": f"/api/v1/watch/namespaces/{HOME}/secrets/other",
            "metrics behind a health check": "/healthz/../metrics",
            "metrics behind an escaped slash": "/healthz%2F..%2Fmetrics",
            "the log of a pod as its name": f"{PODS}/own%2Flog",
            "exec as a name": f"{PODS}/own%2Fexec?command=sh",
            "all of the groups": "/apis/../api/v1/nodes",
            "a subresource of nobody": f"{PODS}/own/exec/../log",
        }.items()
    },
)
ATTEMPTS: Mapping[str, Attempt] = {
    **{f"{EVE}: {name}": attempt for name, attempt in OF_EVE.items()},
    **WITH_ROLES,
    **BY_NAME,
    **ACTING,
    **NODES_OWN,
    **WITH_TOKENS,
    **CERTIFICATES,
    **WITH_PODS,
    **PATHS,
}
"""Name → attempt."""
