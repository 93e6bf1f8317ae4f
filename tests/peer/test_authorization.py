"""Issue 13: who may do what: kube-apiserver and podling are asked the same.

What Kubernetes has answered to 50,000 generated questions is kept as digests (`agreed.py`), of 500 each, and
it is asked again about those of which podling, the questions or the roles say something new.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from peer.agreed import differences
from peer.escalations import EVE, GROUP, NAMESPACES, RBAC, REVIEWS
from peer.server import Server
from podling.apiserver.authz.authorizers import Authorizer, Decision, Opinion, opinion_of
from podling.apiserver.authz.modes import authorizers_of, by_modes
from podling.apiserver.authz.node import NodeGraph
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.authz.roles.namespace_roles import JOINING_INFO
from podling.apiserver.authz.roles.system_roles import JOINING
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.json import from_data
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding

QUESTIONS, ASKED_TOGETHER = 50_000, 500
SEED = 13
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


STANDARD: tuple[str, ...] = ("cluster-admin", "system:kube-scheduler", "system:aggregate-to-admin")
STANDARD += ("system:aggregate-to-edit", "system:aggregate-to-view")
"""Roles that a user each is bound to in a namespace; a controller aggregates the last three."""
HERE = ("system:", "extension-", "random-", "cluster-admin")


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
            name, namespace = f"random-{i}", choice.choice(NAMESPACES)
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
        for name in STANDARD:
            ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
            subject = {"kind": "User", "name": f"standard-{name}", "apiGroup": GROUP}
            body = {"metadata": {"name": f"random-{name}"}, "roleRef": ref, "subjects": [subject]}
            make(f"{RBAC}/namespaces/{NAMESPACES[0]}/rolebindings", body)
    yield
    # Another connection: the first may have been closed meanwhile, since nothing was asked on it.
    with kubernetes.asking() as asking:
        for path in made:
            asking.ask("DELETE", path)


def question(choice: random.Random) -> Question:
    users = [f"user-{choice.randint(0, 9)}", f"system:serviceaccount:{choice.choice(NAMESPACES)}:account"]
    users += ["system:kube-scheduler", *(f"standard-{name}" for name in STANDARD)]
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


def compiled(server: Server) -> tuple[tuple[Authorizer, ...], str]:
    """podling's authorizers, with the default roles and bindings of a server and those of `random_roles`; and
    a digest of these."""
    rbac, every = RbacAuthorizer(), hashlib.sha256()
    for plural, type_ in KINDS.items():
        for one in server.ask("GET", f"{RBAC}/{plural}").body["items"]:
            meta = one["metadata"]
            if meta["name"].startswith(HERE):
                key = meta.get("namespace", ""), meta["name"]
                rbac.changed(key, from_data(one, type_), type_)
                every.update(msgspec.json.encode([*key, {**one, "metadata": None}], order="sorted"))
    return authorizers_of(by_modes("Node", "RBAC"), rbac, NodeGraph()), every.hexdigest()


@pytest.mark.usefixtures("random_roles")
def test_both_decide_alike(kubernetes: Server, kubernetes_programs: Path) -> None:
    """Users, verbs, resources, subresources, names, namespaces and paths, of default roles and of random
    ones. Of several reasons to allow, kube-apiserver gives any."""
    choice = random.Random(SEED)
    questions = [question(choice) for _ in range(QUESTIONS)]
    authorizers, roles = compiled(kubernetes)
    parts = {str(at): questions[at : at + ASKED_TOGETHER] for at in range(0, QUESTIONS, ASKED_TOGETHER)}
    ours = {at: [decided(opinion_of(authorizers, *one)) for one in part] for at, part in parts.items()}

    def ask(at: str) -> str:
        bodies = [msgspec.json.encode(one.review()) for one in parts[at]]
        said = kubernetes.post_all(f"{REVIEWS}/subjectaccessreviews", bodies)
        return written(theirs_of(msgspec.json.decode(one)["status"]) for one in said)

    configurations = {at: [roles, [one.review() for one in part]] for at, part in parts.items()}
    said = {at: written(part) for at, part in ours.items()}
    found = differences("decisions", kubernetes_programs, configurations, said, ask)
    assert [
        (one, our, their)
        for at, (theirs, _) in found.items()
        for one, our, their in zip(parts[at], ours[at], msgspec.json.decode(theirs), strict=True)
        if [our[0], [*our[1]]] != their
    ] == []
    allowed = sum(one[0] for part in ours.values() for one in part)
    assert 0.05 < allowed / QUESTIONS < 0.6, "the questions are worth asking"


Decided = tuple[bool, Sequence[str]]
"""Whether it is allowed, and why it is not."""


def decided(opinion: Opinion) -> Decided:
    is_allowed = opinion.decision is Decision.ALLOW
    return is_allowed, [] if is_allowed else in_any_order(opinion.reason)


def theirs_of(status: Mapping[str, Any]) -> Decided:
    return status["allowed"], [] if status["allowed"] else in_any_order(status.get("reason", ""))


def written(decisions: Iterable[Decided]) -> str:
    return msgspec.json.encode([*decisions]).decode()


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
