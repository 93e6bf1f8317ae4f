"""R-SYS-4: which tokens a node may join with, and what their holders may do."""

from __future__ import annotations

import ssl
from typing import Any

import msgspec
import pytest

from peer.server import Server

SECRETS = "/api/v1/namespaces/kube-system/secrets"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
TYPE = "bootstrap.kubernetes.io/token"
SECRET = "0123456789abcdef"
GROUP = "system:bootstrappers"
AS_HOLDER = {"Impersonate-User": "system:bootstrap:abcdef", "Impersonate-Group": GROUP}
EXTRA, USAGE = "auth-extra-groups", "usage-bootstrap-authentication"
SAID: list[dict[str, Any]] = [
    {},
    {EXTRA: f"{GROUP}:b,{GROUP}:a,{GROUP}:b"},
    {EXTRA: f"{GROUP}:{'a' * 256}"},
    {EXTRA: f"{GROUP}:{'a' * 257}"},
    {EXTRA: f"{GROUP}:a:b-c"},
    {EXTRA: f"{GROUP}:a-"},
    {EXTRA: f"{GROUP}:A"},
    {EXTRA: f"{GROUP}:a "},
    {EXTRA: f"{GROUP}:a\n"},
    {EXTRA: f"{GROUP}:"},
    {EXTRA: GROUP},
    {EXTRA: f"{GROUP}:a,"},
    {EXTRA: ","},
    {EXTRA: ""},
    {EXTRA: "system:masters"},
    {"expiration": "2099-01-02T03:04:05Z"},
    {"expiration": "2099-01-02T03:04:05.678+01:00"},
    {"expiration": "2099-01-02T03:04:05"},
    {"expiration": "2099-01-02"},
    {"expiration": "2020-01-02T03:04:05Z"},
    {"expiration": " 2099-01-02T03:04:05Z"},
    {"expiration": "2099-02-30T03:04:05Z"},
    {"expiration": "2099-01-02T24:00:00Z"},
    {"expiration": "2099-01-02T03:04:05,5Z"},
    {"expiration": "never"},
    {"expiration": ""},
    {USAGE: "True"},
    {USAGE: "1"},
    {USAGE: None},
    {USAGE: "true "},
    {"usage-bootstrap-signing": "true"},
    {"token-id": "other1"},
    {"token-id": None},
    {"token-secret": "0123456789abcdeg"},
    {"token-secret": ""},
    {"token-secret": None},
    {"type": "Opaque"},
    {"type": "bootstrap.kubernetes.io/other"},
    {"description": "more", "other": "more"},
]
"""What each secret says that a good one does not; None for what it leaves out."""
LAST = f"{len(SAID) - 1:06d}"


def secret(number: int) -> dict[str, Any]:
    name = f"{number:06d}"
    good = {"token-id": name, "token-secret": SECRET, USAGE: "true"}
    said = {**good, **SAID[number]}
    kind = said.pop("type", TYPE)
    data = {key: value for key, value in said.items() if value is not None}
    return {"metadata": {"name": f"bootstrap-token-{name}"}, "type": kind, "stringData": data}


NO_TOKENS = [
    f"{LAST}.", LAST, f"{LAST}.{SECRET}0", f"{LAST}.{SECRET[:-1]}", f"{LAST}.{SECRET.upper()}",
    f"{LAST}.{SECRET} more", f"{LAST}.{SECRET}\n", f"zzzzzz.{SECRET}", f"{LAST} {SECRET}", "." * 9,
]  # fmt: skip
TOKENS = [f"{number:06d}.{SECRET}" for number in range(len(SAID))]


@pytest.fixture(scope="module")
def servers(kubernetes: Server, podling: Server) -> tuple[Server, Server]:
    """Both with the secrets, and as soon as they know them."""
    for server in (kubernetes, podling):
        with server.asking() as asking:
            asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "kube-system"}})
            for number in range(len(SAID)):
                made = asking.ask("POST", SECRETS, secret(number))
                assert made.code == 201, made.body
            for _ in range(1000):
                if asking.ask("POST", REVIEWS, {"spec": {"token": TOKENS[-1]}}).body["status"].get("user"):
                    break
    return kubernetes, podling


def owner(server: Server, token: str) -> Any:
    """What a review says of a token. The audience is the server itself."""
    status = server.ask("POST", REVIEWS, {"spec": {"token": token}}).body["status"]
    status.pop("audiences", None)
    return status


@pytest.mark.parametrize("token", [*TOKENS, *NO_TOKENS])
def test_whose_a_token_is(token: str, servers: tuple[Server, Server]) -> None:
    theirs, ours = (owner(server, token) for server in servers)
    assert ours == theirs


@pytest.mark.parametrize("path", ["/version", "/api/v1/nodes"])
@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {TOKENS[-1]}", f"bearer {TOKENS[-1]}", f"Bearer  {TOKENS[-1]}", f"Bearer {TOKENS[-1]} more",
        f"Bearer\t{TOKENS[-1]}", f" Bearer {TOKENS[-1]} ", "Bearer", "Bearer ", "Bearer x", "Basic YTpi",
        "Token x", "x", "",
    ],
)  # fmt: skip
def test_what_is_a_credential(header: str, path: str, servers: tuple[Server, Server]) -> None:
    """Of somebody without a certificate."""

    def asked(server: Server) -> tuple[int, str]:
        stranger = msgspec.structs.replace(server, tls=ssl.create_default_context(cafile=str(server.ca)))
        said = stranger.ask("GET", path, Authorization=header)
        return said.code, said.body.get("message", "")

    theirs, ours = map(asked, servers)
    assert ours == theirs


GETS_NODES = "bootstrap-get-nodes"
"""As `kubeadm:get-nodes`."""
ROLES = (
    "system:node-bootstrapper",
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    GETS_NODES,
)
ASKED = [
    {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    for verb in ("create", "get", "list", "watch", "update", "patch", "delete")
    for group, resource, subresource in (
        ("certificates.k8s.io", "certificatesigningrequests", ""),
        ("certificates.k8s.io", "certificatesigningrequests", "approval"),
        ("certificates.k8s.io", "certificatesigningrequests", "status"),
        ("certificates.k8s.io", "certificatesigningrequests", "nodeclient"),
        ("certificates.k8s.io", "certificatesigningrequests", "selfnodeclient"),
        ("", "nodes", ""),
        ("", "secrets", ""),
        ("authorization.k8s.io", "subjectaccessreviews", ""),
    )
]


def test_what_a_holder_may_do(kubernetes: Server, podling: Server) -> None:
    """Where the roles of a bootstrapper are bound to the group, as podling takes for granted."""
    gets_nodes = {
        "metadata": {"name": GETS_NODES},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
    }
    assert kubernetes.ask("POST", CLUSTER_ROLES, gets_nodes).code == 201
    for number, role in enumerate(ROLES):
        binding = {
            "metadata": {"name": f"bootstrap-{number}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}],
        }
        assert kubernetes.ask("POST", BINDINGS, binding).code == 201

    def allowed(server: Server) -> list[bool]:
        reviews = [{"spec": {"resourceAttributes": asked}} for asked in ASKED]
        return [server.ask("POST", ACCESS, one, **AS_HOLDER).body["status"]["allowed"] for one in reviews]

    # The server learns of the bindings soon.
    theirs = allowed(kubernetes)
    for _ in range(100):
        if theirs == allowed(podling):
            break
        theirs = allowed(kubernetes)
    assert any(theirs)
    assert allowed(podling) == theirs
