"""What the kubelets of two nodes may read and write: kube-apiserver with its NodeRestriction plugin and
podling are asked the same.

`PODLING_LONG` asks 20,000 generated questions instead of 3,000.
"""

from __future__ import annotations

import os
import random
import re
from ast import literal_eval
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from peer.server import Server
from podling.apiserver.authz.authorizers import Authorizer, Decision, opinion_of
from podling.apiserver.authz.modes import authorizers_of, by_modes
from podling.apiserver.authz.node import SOURCES, NodeGraph
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.request.request import RequestInfo, Selecting, User
from podling.model.codec.json import from_data
from podling.model.scheme import resource_of

QUESTIONS = 20_000 if "PODLING_LONG" in os.environ else 3_000
SEED = 23
AT_ONCE = 4
HERE, ELSEWHERE = "nodes-a", "nodes-b"
N1, N2 = "node-one", "node-two"
STRONG = f"system:node:{N2}"
"""A node that a binding lets do everything: only admission refuses it something."""
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
CORE, STORAGE = "/api/v1", "/apis/storage.k8s.io/v1"
PODS = f"{CORE}/namespaces/{HERE}/pods"
DEVICES = "/apis/resource.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def pod(name: str, node: str | None, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "i", **spec.pop("container", {})}
    meta = {"name": name, **spec.pop("metadata", {})}
    grace = {"terminationGracePeriodSeconds": 0}
    more = {"nodeName": node} if node else {}
    return {"metadata": meta, "spec": {"containers": [container], **grace, **more, **spec}}


def volume(name: str, claim: str | None, **spec: Any) -> dict[str, Any]:
    bound = {"claimRef": {"namespace": HERE, "name": claim}} if claim else {}
    rest = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **bound}
    return {"metadata": {"name": name}, "spec": {**rest, **spec}}


def named(name: str) -> dict[str, str]:
    return {"name": name}


def secret_at(name: str, namespace: str = ELSEWHERE) -> dict[str, str]:
    return {"name": name, "namespace": namespace}


def ref(name: str) -> dict[str, Any]:
    return {"secretRef": named(name)}


ENV = [
    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s-env", "key": "k"}}},
    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c-env", "key": "k"}}},
]
ENV_FROM = [{"secretRef": {"name": "s-from"}}, {"configMapRef": {"name": "c-from"}}]
PROJECTED = [
    {"secret": {"name": "s-projected"}},
    {"configMap": {"name": "c-projected"}},
    {"serviceAccountToken": {"path": "t", "audience": "vault"}},
]
SECRET_DRIVERS: dict[str, dict[str, Any]] = {
    "azureFile": {"shareName": "x", "secretName": "s-azure"},
    "cephfs": {"monitors": ["m"], "secretRef": named("s-cephfs")},
    "cinder": {"volumeID": "v", "secretRef": named("s-cinder")},
    "flexVolume": {"driver": "a/b", "secretRef": named("s-flex")},
    "iscsi": {
        "targetPortal": "1.2.3.4",
        "iqn": "iqn.2001-04.com.a:b",
        "lun": 0,
        "secretRef": named("s-iscsi"),
    },
    "rbd": {"monitors": ["m"], "image": "i", "secretRef": named("s-rbd")},
    "scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": named("s-scale")},
    "storageos": {"volumeName": "v", "secretRef": named("s-os")},
    "csi": {"driver": "d", "nodePublishSecretRef": named("s-csi")},
}
VOLUMES = [
    {"name": "v-secret", "secret": {"secretName": "s-volume"}},
    {"name": "v-map", "configMap": {"name": "c-volume"}},
    {"name": "v-projected", "projected": {"sources": PROJECTED}},
    {"name": "v-claim", "persistentVolumeClaim": {"claimName": "claim-one"}},
    *(
        {"name": f"v-claim-{i}", "persistentVolumeClaim": {"claimName": f"claim-{i}"}}
        for i in range(len(SECRET_DRIVERS) + 1)
    ),
    {
        "name": "scratch",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        },
    },
    *({"name": f"d-{name.lower()}", name: driver} for name, driver in SECRET_DRIVERS.items()),
]
DEBUGGER = {
    "name": "debugger",
    "image": "i",
    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s-debug", "key": "k"}}}],
    "envFrom": [{"configMapRef": {"name": "c-debug"}}],
}
INIT = {"name": "init", "image": "i", "envFrom": [{"secretRef": {"name": "s-init"}}]}
STEPS = ("controllerPublish", "nodeStage", "nodePublish", "controllerExpand", "nodeExpand")
MIRROR = {"kubernetes.io/config.mirror": "hash"}


def in_namespace(driver: dict[str, Any]) -> dict[str, Any]:
    return {**driver, "secretRef": secret_at(driver["secretRef"]["name"] + "-pv")}


VOLUME_SOURCES: list[dict[str, Any]] = [
    {"azureFile": {"shareName": "x", "secretName": "s-azure-pv", "secretNamespace": ELSEWHERE}},
    {"azureFile": {"shareName": "x", "secretName": "s-azure-here"}},
    {"flexVolume": {"driver": "a/b", "secretRef": {"name": "s-flex-here"}}},
    {
        "csi": {
            "driver": "d",
            "volumeHandle": "h",
            **{
                f"{step}SecretRef": secret_at(f"s-csi-{step.lower()}")
                for step in (
                    "controllerPublish",
                    "nodeStage",
                    "nodePublish",
                    "controllerExpand",
                    "nodeExpand",
                )
            },
        }
    },
    *(
        {driver: in_namespace(SECRET_DRIVERS[driver])}
        for driver in ("cephfs", "cinder", "iscsi", "rbd", "scaleIO", "storageos")
    ),
]


def world() -> Iterator[tuple[str, Any]]:
    """Where each object of the world is posted, in order."""
    for namespace in (HERE, ELSEWHERE):
        yield f"{CORE}/namespaces", {"metadata": named(namespace)}
        for account in ("account", "default", "other"):
            yield f"{CORE}/namespaces/{namespace}/serviceaccounts", {"metadata": named(account)}
    yield f"{CORE}/namespaces", {"metadata": named("kube-node-lease")}
    everything = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    strong = {"kind": "User", "name": STRONG, "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": named("nodes-strong"), "roleRef": everything, "subjects": [strong]}
    yield "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding
    for node in (N1, N2):
        yield f"{CORE}/nodes", {"metadata": named(node)}
        yield f"{STORAGE}/csinodes", {"metadata": named(node), "spec": {"drivers": []}}
        driver = {"driver": "d.example.com", "nodeName": node}
        pool = {"pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": []}
        yield f"{DEVICES}/resourceslices", {"metadata": named(f"slice-{node}"), "spec": {**driver, **pool}}
        source = {"source": {"persistentVolumeName": "pv-one"}, "nodeName": node, "attacher": "d"}
        yield f"{STORAGE}/volumeattachments", {"metadata": named(f"attachment-{node}"), "spec": source}
    everywhere = {"driver": "d.example.com", "allNodes": True, "devices": []}
    pool = {"pool": {"name": "all", "generation": 1, "resourceSliceCount": 1}}
    yield f"{DEVICES}/resourceslices", {"metadata": named("slice-all"), "spec": {**everywhere, **pool}}
    yield f"{CORE}/persistentvolumes", volume("pv-one", "claim-one", hostPath={"path": "/x"})
    yield f"{CORE}/persistentvolumes", volume("pv-twin", "claim-one", hostPath={"path": "/x"})
    yield f"{CORE}/persistentvolumes", volume("pv-two", "claim-two", hostPath={"path": "/x"})
    yield f"{CORE}/persistentvolumes", volume("pv-free", None, hostPath={"path": "/x"})
    for i, source in enumerate(VOLUME_SOURCES):
        yield f"{CORE}/persistentvolumes", volume(f"pv-{i}", f"claim-{i}", **source)
    claims = [{"name": "own", "resourceClaimName": "device-one"}]
    claims.append({"name": "made", "resourceClaimTemplateName": "template"})
    full: dict[str, Any] = {
        "serviceAccountName": "account",
        "imagePullSecrets": [named("s-pull")],
        "volumes": VOLUMES,
    }
    full |= {
        "initContainers": [INIT],
        "container": {"env": ENV, "envFrom": ENV_FROM},
        "resourceClaims": claims,
    }
    full |= {"metadata": {"name": "full"}, "automountServiceAccountToken": False}
    yield PODS, pod("full", N1, **full)
    two = [{"name": "v", "persistentVolumeClaim": {"claimName": "claim-two"}}]
    two.append({"name": "w", "secret": {"secretName": "s-two"}})
    serves = {"attachRequired": False, "tokenRequests": [{"audience": "of-driver"}]}
    yield f"{STORAGE}/csidrivers", {"metadata": named("d.example.com"), "spec": serves}
    tokens = {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}
    simple = [{"name": "v", "projected": tokens}, {"name": "d", "csi": {"driver": "d.example.com"}}]
    simple.append({"name": "c", "persistentVolumeClaim": {"claimName": "claim-simple"}})
    yield PODS, pod("simple", N1, serviceAccountName="account", volumes=simple)
    for name, bound in (("claim-simple", "pv-free"), ("claim-one", "pv-one")):
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claims_here = f"{CORE}/namespaces/{HERE}/persistentvolumeclaims"
        yield claims_here, {"metadata": named(name), "spec": {**wanted, "volumeName": bound}}
    yield PODS, pod("second", N2, serviceAccountName="other", volumes=two)
    yield PODS, pod("unbound", None, serviceAccountName="other", volumes=[two[1]])
    yield PODS, pod("done", N1, volumes=[{"name": "w", "secret": {"secretName": "s-done"}}])
    unbound = [{"name": "w", "secret": {"secretName": "s-unbound"}}]
    yield PODS, pod("waiting", None, volumes=unbound)


@contextmanager
def populated(server: Server) -> Iterator[Server]:
    """The server with the world in it."""
    made = []
    with server.asking() as asking:
        for path, body in world():
            said = asking.ask("POST", path, body)
            assert said.code in (201, 409), (path, body, said.body)
            made.append(f"{path}/{body['metadata']['name']}")
        debugging = {"spec": {"ephemeralContainers": [DEBUGGER]}}
        said = asking.ask("PATCH", f"{PODS}/full/ephemeralcontainers", debugging, Content_Type=STRATEGIC)
        assert said.code == 200, said.body
        statuses = [{"name": "made", "resourceClaimName": "device-made"}]
        for name, status in (
            ("full", {"resourceClaimStatuses": statuses}),
            ("done", {"phase": "Succeeded"}),
        ):
            said = asking.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, Content_Type=MERGE)
            assert said.code == 200, said.body
        yield server
        for path in reversed(made):
            # Nobody would end a namespace here.
            if not path.startswith(f"{CORE}/namespaces/") or path.count("/") > 4:
                asking.ask("DELETE", path, {"gracePeriodSeconds": 0})


@pytest.fixture(scope="module")
def restricting(kubernetes: Server) -> Iterator[Server]:
    with populated(kubernetes):
        yield kubernetes


@pytest.fixture(scope="module")
def restricting_podling(podling: Server) -> Iterator[Server]:
    with populated(podling):
        yield podling


def secrets() -> list[str]:
    """Every name of a secret in the world, and one that nobody refers to."""
    text = repr(list(world()))
    found = {one.split("'")[0] for one in text.split("'s-")}
    names = [f"s-{part}" for part in found if part and "," not in part and "{" not in part]
    return sorted({*names, "s-debug", "s-nobody"})


MAPS = ["c-env", "c-from", "c-projected", "c-volume", "c-debug", "c-nobody"]
CLAIMS = ["claim-one", "claim-two", "full-scratch", "claim-nobody", "claim-3"]
NAMES: dict[tuple[str, str], list[str]] = {
    ("", "secrets"): secrets(),
    ("", "configmaps"): MAPS,
    ("", "persistentvolumeclaims"): CLAIMS,
    ("", "persistentvolumes"): ["pv-one", "pv-twin", "pv-two", "pv-free", "pv-3"],
    ("", "serviceaccounts"): ["account", "other", "default"],
    ("", "pods"): ["full", "second", "unbound", "done", "none"],
    ("", "nodes"): [N1, N2],
    ("", "services"): ["kubernetes"],
    ("", "endpoints"): ["kubernetes"],
    ("", "events"): ["e"],
    ("", "namespaces"): [HERE],
    ("coordination.k8s.io", "leases"): [N1, N2],
    ("storage.k8s.io", "csinodes"): [N1, N2],
    ("storage.k8s.io", "csidrivers"): ["d"],
    ("storage.k8s.io", "volumeattachments"): [f"attachment-{N1}", f"attachment-{N2}"],
    ("storage.k8s.io", "storageclasses"): ["x"],
    ("resource.k8s.io", "resourceclaims"): ["device-one", "device-made", "device-two"],
    ("resource.k8s.io", "resourceslices"): [f"slice-{N1}", f"slice-{N2}", "slice-all"],
    ("certificates.k8s.io", "certificatesigningrequests"): ["csr"],
    ("certificates.k8s.io", "podcertificaterequests"): ["pcr"],
    ("node.k8s.io", "runtimeclasses"): ["r"],
    ("apps", "secrets"): ["s-env"],
    ("rbac.authorization.k8s.io", "clusterroles"): ["view"],
}
RESOURCES = [*NAMES, *[("", "secrets")] * 6, *[("", "pods")] * 4, ("", "configmaps"), ("", "configmaps")]
VERBS = ("get", "get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "x")
SUBRESOURCES = ("", "", "", "", "", "status", "token", "eviction", "exec", "x")
SELECTED = (
    [("spec.nodeName", N1)],
    [("spec.nodeName", N2)],
    [("nodeName", N1)],
    [("spec.nodeName", N1), ("status.phase", "Running")],
    [("metadata.name", N1)],
    [("metadata.name", "full")],
)
USERS = (
    User(f"system:node:{N1}", ("system:nodes", "system:authenticated")),
    User(f"system:node:{N1}", ("system:nodes", "system:authenticated")),
    User(f"system:node:{N2}", ("system:nodes", "system:authenticated")),
    User("system:node:none", ("system:nodes",)),
    User("system:node:", ("system:nodes",)),
    User(f"system:node:{N1}", ("system:authenticated",)),
    User("bob", ("system:nodes",)),
)


def question(choice: random.Random) -> tuple[User, RequestInfo, bool]:
    group, resource = choice.choice(RESOURCES)
    name = choice.choice((*NAMES[group, resource], *NAMES[group, resource], ""))
    verb, subresource = choice.choice(VERBS), choice.choice(SUBRESOURCES)
    namespace = choice.choice((HERE, HERE, ELSEWHERE, "", "kube-node-lease"))
    selected = choice.choice(SELECTED) if verb in ("list", "watch", "deletecollection") else []
    info = RequestInfo(verb, "", True, group, "v1", namespace, resource, subresource, name)
    fields = tuple(Selecting(key, "In", (value,)) for key, value in selected)
    return choice.choice(USERS), info._replace(fields=fields), choice.random() < 0.5


def every_relation() -> Iterator[tuple[User, RequestInfo, bool]]:
    """Each node about each object in each namespace."""
    for user in (USERS[0], USERS[2]):
        for (group, resource), names in NAMES.items():
            for name in names:
                for namespace in (HERE, ELSEWHERE, ""):
                    info = RequestInfo("get", "", True, group, "v1", namespace, resource, "", name)
                    yield user, info, False


def review(user: User, info: RequestInfo, raw: bool) -> dict[str, Any]:
    asked: dict[str, Any] = {"verb": info.verb, "group": info.api_group, "version": info.api_version}
    asked |= {"resource": info.resource, "subresource": info.subresource}
    asked |= {"namespace": info.namespace, "name": info.name}
    if info.selected and raw:
        asked["fieldSelector"] = {"rawSelector": ",".join(f"{key}={value}" for key, value in info.selected)}
    elif info.selected:
        terms = [{"key": key, "operator": "In", "values": [value]} for key, value in info.selected]
        asked["fieldSelector"] = {"requirements": terms}
    return {"spec": {"user": user.name, "groups": list(user.groups), "resourceAttributes": asked}}


def compiled(server: Server) -> tuple[Authorizer, ...]:
    """podling's authorizers, with a graph of a server's objects."""
    graph = NodeGraph()
    for type_ in SOURCES:
        resource = resource_of(type_)
        prefix = f"/apis/{resource.group}" if resource.group else "/api"
        for one in server.ask("GET", f"{prefix}/{resource.version}/{resource.plural}").body["items"]:
            meta = one["metadata"]
            graph.changed((meta.get("namespace", ""), meta["name"]), from_data(one, type_), type_)
    return authorizers_of(by_modes("Node"), RbacAuthorizer(), graph)


def asked(server: Server, questions: Sequence[tuple[User, RequestInfo, bool]]) -> list[dict[str, Any]]:
    with server.asking() as asking:
        return [asking.ask("POST", REVIEWS, review(*one)).body["status"] for one in questions]


def test_both_decide_alike_about_nodes(restricting: Server) -> None:
    choice = random.Random(SEED)
    questions = [*every_relation(), *(question(choice) for _ in range(QUESTIONS))]
    authorizers = compiled(restricting)
    parts = [questions[i::AT_ONCE] for i in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda part: asked(restricting, part), parts))
    differ, allowed = [], 0
    for i, one in enumerate(questions):
        status = answers[i % AT_ONCE][i // AT_ONCE]
        user, info, _ = one
        opinion = opinion_of(authorizers, user, info)
        # What everybody who is authenticated may do by a role is nothing of nodes.
        if status.get("reason", "").startswith("RBAC: allowed"):
            continue
        allowed += status["allowed"]
        ours = (opinion.decision is Decision.ALLOW, opinion.reason)
        if ours != (status["allowed"], status.get("reason", "")):
            differ.append((user.name, info, status, ours))
    assert differ == []
    assert 0.05 < allowed / len(questions) < 0.6, "the questions are worth asking"


def owner(node: str = N1, **more: Any) -> dict[str, Any]:
    of = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": f"uid of nodes/{node}", "controller": True}
    return {**of, **more}


def mirror(
    *owners: dict[str, Any], node: str | None = N1, annotations: Any = MIRROR, **spec: Any
) -> dict[str, Any]:
    made = pod("m", node, **spec)
    made["metadata"] |= {"annotations": annotations, "ownerReferences": list(owners)}
    return made


def with_volume(**source: Any) -> dict[str, Any]:
    return mirror(owner(), volumes=[{"name": "v", **source}])


def projecting(**source: Any) -> dict[str, Any]:
    return with_volume(projected={"sources": [source]})


def node_labels(*labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": dict.fromkeys(labels, "x")}}


def a_slice(node: str | None) -> dict[str, Any]:
    where = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": "x", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": named("new"), "spec": {"driver": "d.example.com", "pool": pool, **where}}


def token(*audiences: str, of: str = "simple", **more: Any) -> dict[str, Any]:
    ref = {"kind": "Pod", "apiVersion": "v1", "name": of, "uid": f"uid of pods/{of}", **more}
    return {"spec": {"audiences": list(audiences), "boundObjectRef": ref}}


def request(common_name: str, signer: str) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name),
        ]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    sent = b64encode(made.public_bytes(Encoding.PEM)).decode()
    spec = {"request": sent, "signerName": signer, "usages": ["digital signature", "client auth"]}
    return {"metadata": named("csr"), "spec": spec}


NODES, LEASES = f"{CORE}/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES, SLICES = f"{STORAGE}/csinodes", f"{DEVICES}/resourceslices"
TOKEN = f"{CORE}/namespaces/{HERE}/serviceaccounts/account/token"
CLAIM = f"{CORE}/namespaces/{HERE}/persistentvolumeclaims/claim-one"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNERS = [f"kubernetes.io/{name}" for name in ("kube-apiserver-client-kubelet", "kubelet-serving")]
TEMPLATE = VOLUMES[-1 - len(SECRET_DRIVERS)]["ephemeral"]
TAINTS = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
CONFIG = {"spec": {"configSource": {"configMap": {"name": "x", "namespace": "y", "kubeletConfigKey": "k"}}}}
LABELS = [
    f"{prefix}{domain}/{name}"
    for domain in ("kubernetes.io", "k8s.io", "node.kubernetes.io", "kubelet.kubernetes.io", "example.com")
    for prefix in ("", "a.", "beta.", "topology.", "failure-domain.beta.")
    for name in ("os", "zone", "instance-type")
]
BUNDLE = {"signerName": "a/b", "keyType": "ED25519", "credentialBundlePath": "p"}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}
WRITES: list[tuple[str, str, Any]] = [
    ("POST", PODS, mirror(owner())),
    ("POST", PODS, mirror()),
    ("POST", PODS, mirror(owner(), annotations={})),
    ("POST", PODS, mirror(owner(), node=N2)),
    ("POST", PODS, mirror(owner(), node=None)),
    ("POST", PODS, mirror(owner(), owner(uid="x", controller=False))),
    ("POST", PODS, mirror(owner(uid="x"))),
    ("POST", PODS, mirror(owner(name="x"))),
    ("POST", PODS, mirror(owner(kind="Pod"))),
    ("POST", PODS, mirror(owner(controller=False))),
    ("POST", PODS, mirror(owner(blockOwnerDeletion=True))),
    ("POST", PODS, mirror(owner(), serviceAccountName="account")),
    ("POST", PODS, mirror(owner(), imagePullSecrets=[named("x")])),
    ("POST", PODS, mirror(owner(), container={"envFrom": [{"secretRef": named("x")}]})),
    ("POST", PODS, mirror(owner(), container={"envFrom": [{"configMapRef": named("x")}]})),
    ("POST", PODS, mirror(owner(), resourceClaims=[{"name": "a", "resourceClaimName": "b"}])),
    ("POST", PODS, with_volume(secret={"secretName": "x"})),
    ("POST", PODS, with_volume(configMap=named("x"))),
    ("POST", PODS, with_volume(persistentVolumeClaim={"claimName": "x"})),
    ("POST", PODS, with_volume(ephemeral=TEMPLATE)),
    ("POST", PODS, with_volume(csi={"driver": "d"})),
    ("POST", PODS, with_volume(glusterfs={"endpoints": "e", "path": "p"})),
    ("POST", PODS, with_volume(hostPath={"path": "/"})),
    ("POST", PODS, with_volume(azureFile={"secretName": "x", "shareName": "s"})),
    ("POST", PODS, projecting(serviceAccountToken={"path": "t"})),
    ("POST", PODS, projecting(downwardAPI={"items": []})),
    ("POST", PODS, projecting(clusterTrustBundle={"name": "x", "path": "p"})),
    ("POST", PODS, projecting(podCertificate=BUNDLE)),
    ("DELETE", f"{PODS}/second", None),
    ("DELETE", f"{PODS}/full", None),
    ("DELETE", f"{PODS}/unbound", None),
    ("DELETE", f"{PODS}/nobody", None),
    ("DELETE", PODS, None),
    ("PATCH", f"{PODS}/full", node_labels("a")),
    ("PATCH", f"{PODS}/full/resize", {}),
    ("PATCH", f"{PODS}/full/ephemeralcontainers", {}),
    ("PATCH", f"{PODS}/second/status", {"status": {"message": "x"}}),
    ("PATCH", f"{PODS}/full/status", {"status": {"message": "x"}}),
    ("PATCH", f"{PODS}/full/status", node_labels("a")),
    ("PATCH", f"{PODS}/full/status", {"metadata": {"annotations": {"a": "b"}}}),
    ("PATCH", f"{PODS}/full/status", {"status": {"resourceClaimStatuses": None}}),
    (
        "PATCH",
        f"{PODS}/full/status",
        {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}},
    ),
    ("PATCH", f"{PODS}/nobody/status", {"status": {"message": "x"}}),
    *[
        ("POST", f"{PODS}/{name}/eviction", {**EVICTION, "metadata": {"name": name, "namespace": HERE}})
        for name in ("full", "second", "nobody")
    ],
    ("POST", f"{PODS}/unbound/binding", {"metadata": named("unbound"), "target": named(N1)}),
    ("POST", NODES, {"metadata": named(N1)}),
    ("POST", NODES, {"metadata": named("node-three")}),
    ("POST", NODES, {"metadata": {"generateName": "node-"}}),
    ("PATCH", f"{NODES}/{N1}", node_labels(*LABELS)),
    ("PATCH", f"{NODES}/{N1}", node_labels("node-restriction.kubernetes.io/a")),
    ("PATCH", f"{NODES}/{N1}/status", node_labels("a.node-restriction.kubernetes.io/a", "plain")),
    ("PATCH", f"{NODES}/{N1}", node_labels("plain", "example.com/a", "kubernetes.io/hostname")),
    ("PATCH", f"{NODES}/{N2}", node_labels("plain")),
    ("PATCH", f"{NODES}/{N2}/status", {"status": {"capacity": {"cpu": "1"}}}),
    ("PATCH", f"{NODES}/{N1}/status", {"status": {"capacity": {"cpu": "1"}}}),
    ("PATCH", f"{NODES}/{N1}", TAINTS),
    ("PATCH", f"{NODES}/{N1}", CONFIG),
    ("PATCH", f"{NODES}/{N1}", {"metadata": {"ownerReferences": [owner()]}}),
    ("PATCH", f"{NODES}/{N1}", {"spec": {"unschedulable": True}}),
    ("PATCH", f"{NODES}/nobody", {}),
    ("DELETE", f"{NODES}/{N1}", None),
    ("DELETE", f"{NODES}/{N2}", None),
    ("POST", LEASES, {"metadata": named(N1), "spec": {}}),
    ("POST", LEASES, {"metadata": named(N2), "spec": {}}),
    ("POST", LEASES, {"metadata": {"generateName": "node-"}, "spec": {}}),
    ("POST", LEASES.replace("kube-node-lease", HERE), {"metadata": named(N1), "spec": {}}),
    ("POST", CSI_NODES, {"metadata": named("node-three"), "spec": {"drivers": []}}),
    ("PATCH", f"{CSI_NODES}/{N1}", node_labels("a")),
    ("PATCH", f"{CSI_NODES}/{N2}", node_labels("a")),
    ("DELETE", f"{CSI_NODES}/{N1}", None),
    ("DELETE", f"{CSI_NODES}/{N2}", None),
    ("POST", SLICES, a_slice(N1)),
    ("POST", SLICES, a_slice(N2)),
    ("POST", SLICES, a_slice(None)),
    ("DELETE", f"{SLICES}/slice-{N1}", None),
    ("DELETE", f"{SLICES}/slice-{N2}", None),
    ("DELETE", f"{SLICES}/slice-all", None),
    ("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3D{N1}", None),
    ("DELETE", SLICES, None),
    ("POST", TOKEN, {"spec": {"audiences": []}}),
    ("POST", TOKEN, token(kind="Secret")),
    ("POST", TOKEN, token(kind="Node", name=N1)),
    ("POST", TOKEN, token(name="")),
    ("POST", TOKEN, token(uid="")),
    ("POST", TOKEN, token(uid="x")),
    ("POST", TOKEN, token(of="second")),
    ("POST", TOKEN, token(name="nobody")),
    ("POST", TOKEN, token("a", "b")),
    ("POST", TOKEN, token("other")),
    ("POST", TOKEN, token()),
    ("POST", TOKEN, token("vault")),
    ("POST", TOKEN, token("of-driver")),
    ("POST", TOKEN, token("other", of="full")),
    ("POST", TOKEN, token("vault", of="full")),
    ("POST", TOKEN.replace("/account/", "/other/"), token("vault")),
    ("PATCH", f"{CLAIM}/status", {"status": {"capacity": {"storage": "2Gi"}}}),
    ("PATCH", f"{CLAIM}/status", {"status": {"conditions": [{"type": "Resizing", "status": "True"}]}}),
    ("PATCH", f"{CLAIM}/status", {"status": {"phase": "Lost"}}),
    ("PATCH", f"{CLAIM}/status", node_labels("a")),
    ("PATCH", CLAIM, node_labels("a")),
    ("DELETE", CLAIM, None),
    *[("POST", REQUESTS, request(f"system:node:{name}", one)) for one in SIGNERS for name in (N1, N2)],
    ("POST", REQUESTS, request("bob", "example.com/other")),
    ("POST", f"{CORE}/namespaces/{HERE}/secrets", {"metadata": named("x")}),
    ("PATCH", f"{CORE}/namespaces/{HERE}/configmaps/c-env", {}),
]
"""What a node tries to write."""


@pytest.mark.parametrize("user", [f"system:node:{N1}", STRONG, "system:node:"])
def test_what_a_node_writes_is_refused_alike(
    restricting: Server, restricting_podling: Server, user: str
) -> None:
    differ, refused = [], 0
    for method, path, body in WRITES:
        said = [tried(server, user, method, path, body) for server in (restricting, restricting_podling)]
        refused += said[0][0] == 403
        if said[0] != said[1]:
            differ.append((method, path, body, said))
    assert differ == []
    assert refused > 60


def tried(server: Server, user: str, method: str, path: str, body: Any) -> tuple[int, Any]:
    """The answer's code and, if it refuses, its message, with uids by their objects."""
    target = f"{path}{'&' if '?' in path else '?'}dryRun=All"
    text, uids = repr(body), {}
    named_here = {("nodes", N1), ("nodes", N2), *re.findall(r"uid of (\w+)/([\w-]+)", text)}
    for resource, name in sorted(named_here):
        where = NODES if resource == "nodes" else PODS
        uids[f"uid of {resource}/{name}"] = server.ask("GET", f"{where}/{name}").body["metadata"]["uid"]
    for known, uid in uids.items():
        text = text.replace(known, uid)
    headers = {"Content_Type": MERGE} if method == "PATCH" else {}
    said = server.ask(
        method,
        target,
        body if body is None else literal_eval(text),
        Impersonate_User=user,
        Impersonate_Group="system:nodes",
        **headers,
    )
    message = said.body["message"] if said.code >= 400 else ""
    # How a claim differs is told by Go's own comparison.
    message = re.sub(r"(status\.conditions): .*", r"\1", message, flags=re.DOTALL)
    for known, uid in uids.items():
        message = message.replace(uid, known)
    return said.code, message
