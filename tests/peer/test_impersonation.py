"""Issue 13, impersonation as of v1.36: both servers let the same users act as the same others, and say the
same to those they do not let.

Who asks is told by the headers of a front proxy, so that he may be anybody; a SelfSubjectReview shows whom
the server takes him for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from peer.server import Server
from peer.test_authentication import WHO_AM_I, Both, both

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHENTICATION = "authentication.k8s.io"
NODE_NAME = "Authentication.kubernetes.io%2Fnode-name"
Headers = Sequence[tuple[str, str]]


def rule(verbs: str, resources: str, *names: str, group: str = "") -> dict[str, Any]:
    return {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": resources.split(),
        "resourceNames": list(names),
    }


def constrained(mode: str, *rules: dict[str, Any]) -> list[dict[str, Any]]:
    on = rule(f"impersonate-on:{mode}:create", "selfsubjectreviews", group=AUTHENTICATION)
    return [on, *rules]


def asked(verb: str, resources: str, *names: str) -> dict[str, Any]:
    return rule(verb, resources, *names, group=AUTHENTICATION)


INFO = "impersonate:user-info"
GRANTS: Mapping[str, list[dict[str, Any]]] = {
    "nobody": [],
    "everything": [rule("impersonate", "*"), rule("impersonate", "*", group=AUTHENTICATION)],
    "legacy": [
        rule("impersonate", "users", "jane", "system:anonymous", "system:node:n"),
        rule("impersonate", "groups", "devs", "system:masters", "system:unauthenticated", "system:nodes"),
        rule("impersonate", "serviceaccounts", "a"),
        rule("impersonate", "userextras/acme.io/key", "one", group=AUTHENTICATION),
        rule("impersonate", "userextras/scopes", group=AUTHENTICATION),
        rule("impersonate", "uids", "7", group=AUTHENTICATION),
    ],
    "info": constrained(
        "user-info",
        asked(INFO, "users", "jane", "system:anonymous", "joe@x", "system:serviceaccount:default:a:b"),
        asked(INFO, "groups", "devs", "system:masters", "system:unauthenticated", ""),
        asked(INFO, "userextras/acme.io/key userextras/scopes", "one"),
        asked(INFO, "uids", "7"),
    ),
    "any-info": constrained("user-info", asked(INFO, "*")),
    "info-without-action": [asked(INFO, "*")],
    "action-without-info": constrained("user-info"),
    "arbitrary": constrained("arbitrary-node", asked("impersonate:arbitrary-node", "nodes", "n")),
    "associated": constrained("associated-node", asked("impersonate:associated-node", "nodes")),
    "accounts": constrained("serviceaccount", asked("impersonate:serviceaccount", "serviceaccounts", "a")),
}
ON_NODE = "system:serviceaccount:default:agent-{}"
WANTED: Mapping[str, Headers] = {
    "nobody": [],
    "a user": [("Impersonate-User", "jane")],
    "another": [("Impersonate-User", "joe")],
    "an odd name": [("Impersonate-User", "joe@x")],
    "an empty name": [("Impersonate-User", "")],
    "two names": [("Impersonate-User", "jane"), ("Impersonate-User", "joe")],
    "a group": [("Impersonate-User", "jane"), ("Impersonate-Group", "devs")],
    "two groups": [("Impersonate-User", "jane"), ("Impersonate-Group", "devs"), ("Impersonate-Group", "ops")],
    "a group twice": [("Impersonate-User", "jane"), *[("Impersonate-Group", "devs")] * 2],
    "an empty group": [("Impersonate-User", "jane"), ("Impersonate-Group", "")],
    "masters": [("Impersonate-User", "jane"), ("Impersonate-Group", "system:masters")],
    "authenticated": [("Impersonate-User", "jane"), ("Impersonate-Group", "system:authenticated")],
    "unauthenticated": [("Impersonate-User", "jane"), ("Impersonate-Group", "system:unauthenticated")],
    "anonymous": [("Impersonate-User", "system:anonymous")],
    "anonymous in a group": [("Impersonate-User", "system:anonymous"), ("Impersonate-Group", "devs")],
    "a uid": [("Impersonate-User", "jane"), ("Impersonate-Uid", "7")],
    "another uid": [("Impersonate-User", "jane"), ("Impersonate-Uid", "8")],
    "two uids": [("Impersonate-User", "jane"), ("Impersonate-Uid", "7"), ("Impersonate-Uid", "8")],
    "extra": [("Impersonate-User", "jane"), ("Impersonate-Extra-Acme.io%2Fkey", "one")],
    "extra of another value": [("Impersonate-User", "jane"), ("Impersonate-Extra-acme.io%2Fkey", "two")],
    "extra twice": [
        ("Impersonate-User", "jane"),
        ("Impersonate-Extra-acme.io%2Fkey", "one"),
        ("impersonate-extra-ACME.io%2fkey", "two"),
    ],
    "extra without a domain": [("Impersonate-User", "jane"), ("Impersonate-Extra-scopes", "one")],
    "extra with a bad path": [("Impersonate-User", "jane"), ("Impersonate-Extra-acme.io%2Fa%20b", "one")],
    "extra with a bad domain": [("Impersonate-User", "jane"), ("Impersonate-Extra-acme_io%2Fa", "one")],
    "extra with a broken escape": [("Impersonate-User", "jane"), ("Impersonate-Extra-a%zz", "one")],
    "extra without a key": [("Impersonate-User", "jane"), ("Impersonate-Extra-", "one")],
    "empty extra": [("Impersonate-User", "jane"), ("Impersonate-Extra-acme.io%2Fkey", "")],
    "a group, no user": [("Impersonate-Group", "devs")],
    "a uid, no user": [("Impersonate-Uid", "7")],
    "extra, no user": [
        ("Impersonate-Extra-b", "2"),
        ("Impersonate-Extra-a", "1"),
        ("Impersonate-Extra-a", '"'),
    ],
    "all but a user": [
        ("Impersonate-Group", "devs"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-a", "\t'"),
    ],
    "an unknown header": [("Impersonate-User", "jane"), ("Impersonate-Role", "admin")],
    "an account": [("Impersonate-User", "system:serviceaccount:default:a")],
    "another account": [("Impersonate-User", "system:serviceaccount:default:b")],
    "an account in a group": [
        ("Impersonate-User", "system:serviceaccount:default:a"),
        ("Impersonate-Group", "devs"),
    ],
    "nearly an account": [("Impersonate-User", "system:serviceaccount:default:a:b")],
    "an account of no namespace": [("Impersonate-User", "system:serviceaccount::a")],
    "an account of a bad name": [("Impersonate-User", "system:serviceaccount:default:A")],
    "a node": [("Impersonate-User", "system:node:n")],
    "another node": [("Impersonate-User", "system:node:m")],
    "a node with its group": [("Impersonate-User", "system:node:n"), ("Impersonate-Group", "system:nodes")],
    "a node in a group": [("Impersonate-User", "system:node:n"), ("Impersonate-Group", "devs")],
    "a node of a bad name": [("Impersonate-User", "system:node:N")],
    "a node of no name": [("Impersonate-User", "system:node:")],
    "a node with a uid": [("Impersonate-User", "system:node:n"), ("Impersonate-Uid", "7")],
}

NO_TEXT: Mapping[str, Headers] = {
    "a name": [("Impersonate-User", "ä")],
    "a group": [("Impersonate-User", "jane"), ("Impersonate-Group", "ä")],
    "extra": [("Impersonate-User", "jane"), ("Impersonate-Extra-acme.io%2Fkey", "ä")],
    "a key": [("Impersonate-User", "jane"), ("Impersonate-Extra-acme.io%2F%e4", "one")],
    "of a client": [("User-Agent", "ä"), ("Audit-Id", "ä")],
}
"""Sent in Latin 1, which is no UTF-8."""


@pytest.fixture(scope="module")
def servers(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    for one in both(kubernetes_programs, tmp_path_factory.mktemp("impersonation"), []):
        for server in one[:2]:
            for name, rules in GRANTS.items():
                grant(server, name, rules)
        yield one


def grant(server: Server, name: str, rules: list[dict[str, Any]]) -> None:
    """The rules to the group of that name."""
    role, group = {"metadata": {"name": f"own-{name}"}}, "rbac.authorization.k8s.io"
    binding = {
        **role,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": f"own-{name}"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": name}],
    }
    for plural, body in (("clusterroles", {**role, "rules": rules}), ("clusterrolebindings", binding)):
        assert server.ask("POST", f"{RBAC}/{plural}", body).code == 201


class Asker(NamedTuple):
    """A user of a group; `{}` in its name is a number. `node`: where its token says that it is."""

    name: str
    group: str
    node: str = ""

    def headers(self, number: int) -> Headers:
        """How the proxy names it. kube-apiserver begins with the way that the same user was last allowed, and
        tells of it first: with a number of its own no asker has a past."""
        on = [(f"X-Remote-Extra-{NODE_NAME}", self.node)] if self.node else []
        return [("X-Remote-User", self.name.format(number)), ("X-Remote-Group", self.group), *on]


ASKERS: Mapping[str, Asker] = {
    **{name: Asker(f"{name}-{{}}", name) for name in GRANTS},
    "administrator": Asker("root-{}", "system:masters"),
    "account on the node": Asker(ON_NODE, "associated", "n"),
    "account on another node": Asker(f"{ON_NODE}-elsewhere", "associated", "m"),
    "account on no node": Asker(f"{ON_NODE}-nowhere", "associated"),
    "user that says he is on the node": Asker("user-{}", "associated", "n"),
}


@pytest.mark.parametrize("asker", ASKERS)
def test_who_may_act_as_whom(servers: Both, asker: str) -> None:
    different = {}
    for number, (what, wanted) in enumerate(WANTED.items()):
        headers = [*ASKERS[asker].headers(number), *wanted]
        theirs, ours = servers.answers(WHO_AM_I, {}, headers, pair="front")
        if theirs != ours:
            different[what] = (theirs, ours)
    assert not different, different


@pytest.mark.parametrize("what", NO_TEXT)
def test_bytes_that_are_no_text(servers: Both, what: str) -> None:
    headers = [*ASKERS["everything"].headers(len(what)), *NO_TEXT[what]]
    theirs, ours = servers.answers(WHO_AM_I, {}, headers, pair="front")
    assert ours == theirs and theirs[0] == 201


PODS = "/api/v1/namespaces/default/pods"
ASKS = [
    ("GET", PODS),
    ("GET", f"{PODS}?fieldSelector=spec.nodeName=n"),
    ("GET", f"{PODS}?fieldSelector=spec.nodeName=m"),
    ("GET", "/api/v1/nodes/n"),
    ("GET", "/api/v1/nodes/m"),
    ("GET", "/api/v1/namespaces/default/secrets/a"),
    ("DELETE", "/api/v1/nodes/m"),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"),
    ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
]


@pytest.mark.parametrize("headers", ["a node with its group", "a node", "masters"])
@pytest.mark.parametrize(("method", "target"), ASKS)
def test_an_administrator_gets_what_the_other_gets(
    servers: Both, headers: str, method: str, target: str
) -> None:
    """`kubectl --as system:node:n` is that node, `--as-group system:masters` an administrator."""
    body: Any = {} if method == "POST" else None
    wanted = [("X-Remote-User", f"root of {headers}"), ("X-Remote-Group", "system:masters"), *WANTED[headers]]
    theirs, ours = servers.answers(target, body, wanted, pair="front", method=method)
    assert ours[0] == theirs[0]
    if theirs[0] == 403:
        assert ours == theirs
