"""Issue 13: who may do what: kube-apiserver and podling are asked the same.

`PODLING_LONG` asks 50,000 generated questions instead of 10,000.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import msgspec
import pytest

from peer.server import Answer, Server
from podling.apiserver.authz.authorizers import Authorizer, Decision, opinion_of
from podling.apiserver.authz.modes import authorizers_of, by_modes
from podling.apiserver.authz.node import NodeGraph
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.authz.roles.namespace_roles import JOINING_INFO
from podling.apiserver.authz.roles.system_roles import JOINING
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.json import from_data
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding

RBAC, REVIEWS = "/apis/rbac.authorization.k8s.io/v1", "/apis/authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
QUESTIONS = 50_000 if "PODLING_LONG" in os.environ else 10_000
CONNECTIONS = 4
SEED = 13
NAMESPACES = ("authz-a", "authz-b")
KINDS: dict[str, type[Any]] = {
    "clusterroles": ClusterRole,
    "roles": Role,
    "clusterrolebindings": ClusterRoleBinding,
    "rolebindings": RoleBinding,
}
DISTRIBUTIONS_OWN = {"system:openshift:public-info-viewer", "system:controller:service-ca-cert-publisher"}
"""Roles and bindings that the build of kube-apiserver at hand has, and Kubernetes does not."""
PROVIDES = "system:controller:directory-provisioner"
"""What podling alone has."""
VERBS: tuple[str, ...] = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "escalate",
)
VERBS += ("bind", "impersonate", "approve", "*", "made-up")
"""Without `proxy`, which this build of kube-apiserver asks for as `unsafeproxy`: Kubernetes does not."""
GROUPS: tuple[str, ...] = (
    "",
    "apps",
    "batch",
    GROUP,
    "certificates.k8s.io",
    "events.k8s.io",
    "example.com",
    "*",
)
RESOURCES: tuple[str, ...] = (
    "pods",
    "secrets",
    "configmaps",
    "services",
    "nodes",
    "deployments",
    "jobs",
    "events",
    "roles",
)
RESOURCES += ("clusterroles", "signers", "leases", "serviceaccounts", "widgets", "endpoints", "*")
SUBRESOURCES = ("", "", "", "log", "exec", "status", "scale", "token", "*", "made-up")
NAMES = ("", "", "a", "b", "kube-scheduler")
PATHS: tuple[str, ...] = (
    "/",
    "/api",
    "/api/v1",
    "/apis/x",
    "/healthz",
    "/healthz/etcd",
    "/metrics",
    "/version",
    "/version/",
)
PATHS += ("/openapi/v2", "/readyz", "/logs/a", "/log", "/a*b", "*", "/.well-known/openid-configuration")
PATTERNS = (*PATHS, "/logs/*", "/log*", "/healthz/*", "/*")


class Question(NamedTuple):
    user: User
    info: RequestInfo

    def review(self) -> dict[str, Any]:
        user, info = self
        spec: dict[str, Any] = {"user": user.name, "groups": list(user.groups)}
        if info.is_resource_request:
            asked = {"verb": info.verb, "group": info.api_group, "version": info.api_version}
            asked |= {"resource": info.resource, "subresource": info.subresource}
            spec["resourceAttributes"] = {**asked, "namespace": info.namespace, "name": info.name}
        else:
            spec["nonResourceAttributes"] = {"verb": info.verb, "path": info.path}
        return {"spec": spec}


def some(choice: random.Random, of: tuple[str, ...], most: int = 3) -> list[str]:
    return choice.sample(of, choice.randint(1, min(most, len(of))))


def random_rule(choice: random.Random, *, namespaced: bool) -> dict[str, Any]:
    if not namespaced and choice.random() < 0.2:
        return {"verbs": some(choice, VERBS), "nonResourceURLs": some(choice, PATTERNS)}
    resources = some(choice, RESOURCES)
    resources = [f"{one}/{sub}" if (sub := choice.choice(SUBRESOURCES)) else one for one in resources]
    rule: dict[str, Any] = {"verbs": some(choice, VERBS), "apiGroups": some(choice, GROUPS)}
    names = [one for one in some(choice, NAMES) if one] if choice.random() < 0.3 else []
    return {**rule, "resources": resources, "resourceNames": names}


def subjects(choice: random.Random) -> list[dict[str, str]]:
    made = []
    for _ in range(choice.randint(1, 3)):
        match choice.randint(0, 2):
            case 0:
                made.append({"kind": "User", "name": f"user-{choice.randint(0, 9)}", "apiGroup": GROUP})
            case 1:
                made.append({"kind": "Group", "name": f"group-{choice.randint(0, 4)}", "apiGroup": GROUP})
            case _:
                namespace = choice.choice(NAMESPACES)
                made.append({"kind": "ServiceAccount", "name": "account", "namespace": namespace})
    return made


@pytest.fixture(scope="module")
def random_roles(kubernetes: Server) -> Iterator[None]:
    """30 cluster roles and 30 roles of random rules, each bound; some bindings have no role."""
    choice = random.Random(SEED)
    made: list[str] = []

    def make(path: str, body: dict[str, Any]) -> None:
        assert asking.ask("POST", path, body).code == 201, body
        made.append(f"{path}/{body['metadata']['name']}")

    with kubernetes.asking() as asking:
        for namespace in NAMESPACES:
            asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for i in range(30):
            name, namespace = f"authz-{i}", choice.choice(NAMESPACES)
            where = f"{RBAC}/namespaces/{namespace}"
            wide = [random_rule(choice, namespaced=False) for _ in range(choice.randint(1, 4))]
            near = [random_rule(choice, namespaced=True) for _ in range(choice.randint(1, 4))]
            ref: dict[str, Any] = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
            meta: dict[str, Any] = {"metadata": {"name": name}}
            if i % 10:
                make(f"{RBAC}/clusterroles", {**meta, "rules": wide})
                make(f"{where}/roles", {**meta, "rules": near})
            make(f"{RBAC}/clusterrolebindings", {**meta, "roleRef": ref, "subjects": subjects(choice)})
            kind = choice.choice(("Role", "ClusterRole"))
            bound = {**meta, "roleRef": {**ref, "kind": kind}, "subjects": subjects(choice)}
            make(f"{where}/rolebindings", bound)
        standard = ("admin", "edit", "view", "cluster-admin", "system:kube-scheduler")
        for name in standard:
            ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
            subject = {"kind": "User", "name": f"standard-{name}", "apiGroup": GROUP}
            body = {"metadata": {"name": f"authz-{name}"}, "roleRef": ref, "subjects": [subject]}
            make(f"{RBAC}/namespaces/{NAMESPACES[0]}/rolebindings", body)
    yield
    # Another connection: the first may have been closed meanwhile, since nothing was asked on it.
    with kubernetes.asking() as asking:
        for path in made:
            asking.ask("DELETE", path)


def question(choice: random.Random) -> Question:
    users = [f"user-{choice.randint(0, 9)}", f"system:serviceaccount:{choice.choice(NAMESPACES)}:account"]
    users += ["standard-view", "standard-edit", "standard-cluster-admin", "system:kube-scheduler"]
    users += ["system:kube-controller-manager", "system:serviceaccount:kube-system:job-controller", "nobody"]
    groups = [one for one in ("system:authenticated", "group-0", "group-3") if choice.random() < 0.4]
    groups += ["system:masters"] if choice.random() < 0.02 else []
    user = User(choice.choice(users), tuple(groups))
    if choice.random() < 0.15:
        return Question(user, RequestInfo(choice.choice(VERBS), choice.choice(PATHS)))
    namespace = choice.choice(("", *NAMESPACES, "kube-system"))
    parts = (choice.choice(RESOURCES), choice.choice(SUBRESOURCES), choice.choice(NAMES))
    group = choice.choice(GROUPS)
    return Question(user, RequestInfo(choice.choice(VERBS), "", True, group, "v1", namespace, *parts))


def compiled(server: Server) -> tuple[Authorizer, ...]:
    """podling's authorizers, with the roles and bindings of a server."""
    rbac = RbacAuthorizer()
    for plural, type_ in KINDS.items():
        for one in server.ask("GET", f"{RBAC}/{plural}").body["items"]:
            meta = one["metadata"]
            rbac.changed((meta.get("namespace", ""), meta["name"]), from_data(one, type_), type_)
    return authorizers_of(by_modes("Node", "RBAC"), rbac, NodeGraph())


def asked(server: Server, questions: Sequence[Question]) -> list[dict[str, Any]]:
    """`status` of what the server answers to each; questions are asked on several connections."""

    def answers(part: Sequence[Question]) -> list[bytes]:
        bodies = [msgspec.json.encode(one.review()) for one in part]
        return server.post_all(f"{REVIEWS}/subjectaccessreviews", bodies)

    parts = [questions[at : at + 1000] for at in range(0, len(questions), 1000)]
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return [msgspec.json.decode(one)["status"] for part in threads.map(answers, parts) for one in part]


@pytest.mark.usefixtures("random_roles")
def test_both_decide_alike(kubernetes: Server) -> None:
    """Users, verbs, resources, subresources, names, namespaces and paths, of default roles and of random
    ones. Of several reasons to allow, kube-apiserver gives any."""
    choice = random.Random(SEED)
    questions = [question(choice) for _ in range(QUESTIONS)]
    authorizers = compiled(kubernetes)
    theirs = asked(kubernetes, questions)
    differ, allowed = [], 0
    for one, status in zip(questions, theirs, strict=True):
        opinion = opinion_of(authorizers, *one)
        allowed += status["allowed"]
        same = (opinion.decision is Decision.ALLOW) is status["allowed"]
        if not status["allowed"]:
            same = same and in_any_order(opinion.reason) == in_any_order(status.get("reason", ""))
        if not same:
            differ.append((one, status, opinion))
    assert differ == []
    assert 0.05 < allowed / QUESTIONS < 0.6, "the questions are worth asking"


def in_any_order(reason: str) -> list[str]:
    return sorted(reason.removeprefix("RBAC: ").strip("[]").split(", "))


def shown(server: Server, plural: str) -> dict[tuple[str, str], Any]:
    found = {}
    for one in server.ask("GET", f"{RBAC}/{plural}").body["items"]:
        meta = one["metadata"]
        if meta["name"].startswith(("system:", "admin", "edit", "view", "cluster-admin", "podling:")):
            kept = {key: meta.get(key) for key in ("labels", "annotations")}
            rest = {key: one.get(key) for key in ("rules", "aggregationRule", "subjects", "roleRef")}
            found[meta.get("namespace", ""), meta["name"]] = {**kept, **rest}
    return found


@pytest.mark.parametrize("plural", KINDS)
def test_both_have_the_same_defaults(kubernetes: Server, podling: Server, plural: str) -> None:
    theirs, ours = shown(kubernetes, plural), shown(podling, plural)
    assert {key: one for key, one in theirs.items() if key[1] not in DISTRIBUTIONS_OWN} == {
        key: one for key, one in ours.items() if key[1] not in {*JOINING, JOINING_INFO, PROVIDES}
    }


EVE, EDITOR = "authz-eve", "authz-editor"
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
ATTEMPTS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("POST", ROLES, role(ALL), {}),
    ("POST", ROLES, role(rule("*", "pods")), {}),
    ("POST", ROLES, role(rule("get delete", "pods configmaps")), {}),
    ("POST", ROLES, role(rule("get", "*")), {}),
    ("POST", ROLES, role(rule("get", "pods", "*")), {}),
    ("POST", ROLES, role(rule("get", "pods/*")), {}),
    ("POST", ROLES, role(rule("get", "*/exec")), {}),
    ("POST", ROLES, role(rule("get", "secrets")), {}),
    ("POST", ROLES, role(rule("get", "secrets", names="mine other")), {}),
    ("POST", ROLES, role(rule("create", "pods/exec")), {}),
    ("POST", ROLES, role(URLS), {}),
    ("POST", ROLES, role(rule("escalate", "clusterroles", GROUP)), {}),
    ("POST", ROLES, role(rule("bind", "clusterroles", GROUP)), {}),
    ("POST", ROLES, role(rule("impersonate", "users groups serviceaccounts")), {}),
    ("POST", ROLES, role(READS, aggregationRule=SELECTOR), {}),
    ("POST", f"{ROLES}?dryRun=All", role(ALL), {}),
    ("POST", ROLES_HERE, role(rule("get", "secrets")), {}),
    ("POST", ROLES_HERE, role(ALL), {}),
    ("PUT", f"{ROLES}/authz-new", role(ALL), {}),
    ("PATCH", f"{ROLES}/authz-new?fieldManager=e", role(ALL, **TYPED), {"Content_Type": APPLY}),
    ("PATCH", f"{ROLES}/cluster-admin", {"rules": [ALL]}, {"Content_Type": MERGE}),
    ("PATCH", f"{ROLES}/authz-eve", {"rules": [ALL]}, {"Content_Type": MERGE}),
    ("POST", BINDINGS, binding("cluster-admin"), {}),
    ("POST", BINDINGS, binding("system:node"), {}),
    ("POST", BINDINGS, binding("not-there"), {}),
    ("POST", BINDINGS_HERE, binding("cluster-admin"), {}),
    ("POST", BINDINGS_HERE, binding("not-there", "Role"), {}),
    ("POST", BINDINGS_HERE, binding("authz-strong", "Role"), {}),
    ("PUT", f"{BINDINGS}/authz-new", binding("cluster-admin"), {}),
    ("PATCH", f"{BINDINGS}/cluster-admin", {"subjects": []}, {"Content_Type": MERGE}),
    ("GET", f"{CORE}/secrets", None, {}),
    ("GET", f"{CORE}/secrets/other", None, {}),
    ("GET", f"{CORE}/secrets?fieldSelector=metadata.name%3Dmine", None, {}),
    ("GET", f"{CORE}/pods/x/exec?command=a", None, {}),
    ("GET", f"{CORE}/pods/x/attach", None, {}),
    ("GET", f"{CORE}/pods/x/portforward", None, {}),
    ("POST", f"{CORE}/pods/x/exec?command=a", None, {}),
    ("GET", f"{CORE}/pods/x%2Flog", None, {}),
    ("GET", f"{CORE}/pods/x/log", None, {}),
    ("GET", "/api/v1/watch/secrets", None, {}),
    ("GET", f"/api/v1/watch{HERE}/secrets/other", None, {}),
    ("GET", f"/api/v1{HERE}//secrets", None, {}),
    ("GET", "/metrics", None, {}),
    ("GET", "/debug/pprof/", None, {}),
    ("DELETE", f"{CORE}/pods", None, {}),
    ("PUT", f"{CORE}/pods/x/ephemeralcontainers", {}, {}),
    ("POST", f"{CORE}/serviceaccounts/default/token", {}, {}),
    ("POST", f"{REVIEWS}/subjectaccessreviews", {}, {}),
    ("POST", f"{REVIEWS}{HERE}/localsubjectaccessreviews", {}, {}),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}, {}),
    ("GET", "/api/v1/nodes/n/proxy/", None, {}),
    ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {}, {}),
    ("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", {}, {}),
    ("PUT", "/api/v1/nodes/n/status", {}, {}),
    ("POST", f"{CORE}/pods/x/eviction", {}, {}),
    ("POST", f"{CORE}/pods/x/binding", {}, {}),
    ("PUT", f"/api/v1{HERE}/finalize", {}, {}),
    ("POST", "/api/v1/namespaces", {}, {}),
    ("GET", "/api/v1/persistentvolumes", None, {}),
    ("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {}, {}),
    ("POST", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", {}, {}),
    ("POST", "/apis/storage.k8s.io/v1/storageclasses", {}, {}),
]
"""What a user who may write roles, and holds few rights, tries in order to have more."""


@pytest.fixture(scope="module")
def eve(kubernetes: Server, podling: Server) -> Iterator[None]:
    for server in (kubernetes, podling):
        make_eve(server)
    yield
    for server in (kubernetes, podling):
        for path in (f"{ROLES}/authz-eve", f"{BINDINGS}/authz-eve", f"{ROLES_HERE}/authz-strong"):
            server.ask("DELETE", path)


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


@pytest.mark.usefixtures("eve")
@pytest.mark.parametrize(("method", "path", "body", "headers"), ATTEMPTS)
def test_escalation_is_refused_alike(
    kubernetes: Server, podling: Server, method: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    theirs, ours = (
        told(server.ask(method, path, body, Impersonate_User=EVE, **headers))
        for server in (kubernetes, podling)
    )
    assert theirs == ours
    assert theirs[0] in (403, 404), theirs


def told(answer: Answer) -> tuple[int, Any]:
    body = answer.body
    return answer.code, body.get("message") if isinstance(body, dict) else None


def test_what_one_may_is_listed_alike(kubernetes: Server, podling: Server) -> None:
    """What `kubectl auth can-i --list` shows; kube-apiserver lists the bindings in any order."""
    for user in (EVE, "system:kube-scheduler", "system:kube-controller-manager", "nobody"):
        listed = []
        for server in (kubernetes, podling):
            review = {"spec": {"namespace": NAMESPACES[0]}}
            said = server.ask("POST", f"{REVIEWS}/selfsubjectrulesreviews", review, Impersonate_User=user)
            status = said.body["status"]
            listed.append(
                (
                    sorted(map(str, status["resourceRules"])),
                    sorted(
                        str(one)
                        for one in status["nonResourceRules"]
                        if "/.well-known" not in one["nonResourceURLs"]
                    ),
                    status["incomplete"],
                )
            )
        assert listed[0] == listed[1], user
