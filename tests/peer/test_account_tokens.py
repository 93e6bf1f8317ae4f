"""Issue 13, tokens of service accounts: both servers issue, recognise and refuse the same ones, and say the
same of them. Each signs with its own key; the tokens that nobody issued are made with that key, too."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from peer import control_plane
from peer.server import Answer, Server
from podling.apiserver.authn.tokens import ISSUER, SigningKey

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
NAMESPACE = "account-tokens"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
ACCOUNT = "account"
ACCOUNTS = f"{CORE}/serviceaccounts"
FORCED = {"gracePeriodSeconds": 0}
POD = {
    "metadata": {"name": "pod"},
    "spec": {
        "serviceAccountName": ACCOUNT,
        "nodeName": "node",
        "automountServiceAccountToken": False,
        "containers": [{"name": "a", "image": "a"}],
    },
}
FREE_POD = {"metadata": {"name": "free"}, "spec": {**POD["spec"], "nodeName": ""}}  # type: ignore[dict-item]
OTHER_POD = {
    "metadata": {"name": "other"},
    "spec": {**POD["spec"], "serviceAccountName": "other"},  # type: ignore[dict-item]
}
SECRET = {"metadata": {"name": "secret"}}
LEGACY = {
    "metadata": {"name": "legacy", "annotations": {"kubernetes.io/service-account.name": ACCOUNT}},
    "type": "kubernetes.io/service-account-token",
}
OBJECTS: tuple[tuple[str, Any], ...] = (
    ("/api/v1/nodes", {"metadata": {"name": "node"}}),
    (ACCOUNTS, {"metadata": {"name": ACCOUNT}}),
    (ACCOUNTS, {"metadata": {"name": "other"}}),
    (f"{CORE}/secrets", SECRET),
    (f"{CORE}/secrets", LEGACY),
    (f"{CORE}/pods", POD),
    (f"{CORE}/pods", FREE_POD),
    (f"{CORE}/pods", OTHER_POD),
)


class Side(NamedTuple):
    server: Server
    key: SigningKey

    def shown(self, said: Any) -> Any:
        """What both servers would say alike."""
        text = json.dumps(said, sort_keys=True).replace(ISSUER, "ISSUER")
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UID", text)
        return json.loads(re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text))

    def ask(self, method: str, target: str, body: Any = None) -> Answer:
        return self.server.ask(method, target, body)

    def request(self, ref: Any = None, *, account: str = ACCOUNT, **spec: Any) -> Answer:
        wanted = {**spec, **({"boundObjectRef": ref} if ref else {})}
        return self.ask("POST", f"{CORE}/serviceaccounts/{account}/token", {"spec": wanted})

    def review(self, token: str, *audiences: str) -> Any:
        body = {"spec": {"token": token, "audiences": [one.replace("own", ISSUER) for one in audiences]}}
        return self.shown(self.ask("POST", REVIEWS, body).body["status"])

    def uid(self, path: str) -> str:
        found: str = self.ask("GET", path).body["metadata"]["uid"]
        return found

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Of a good token, bound to the pod; None takes a claim away."""
        now = int(time.time())
        claims = {
            "aud": [ISSUER],
            "exp": now + 3600,
            "iat": now,
            "iss": ISSUER,
            "jti": "11111111-1111-1111-1111-111111111111",
            "kubernetes.io": {
                "namespace": NAMESPACE,
                "serviceaccount": {"name": ACCOUNT, "uid": self.uid(f"{ACCOUNTS}/{ACCOUNT}")},
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
        }
        return {key: value for key, value in {**claims, **changed}.items() if value is not None}

    def signed(self, **changed: Any) -> str:
        return self.key.sign(json.dumps(self.claims(**changed)).encode())

    def bound(self, **to: Any) -> str:
        own = self.claims()["kubernetes.io"]
        return self.signed(**{"kubernetes.io": {**own, **to}})


class Both(NamedTuple):
    sides: tuple[Side, Side]

    def alike(self, ask: Callable[[Side], Any]) -> Any:
        theirs, ours = (one.shown(ask(one)) for one in self.sides)
        assert ours == theirs
        return ours


@pytest.fixture(scope="module")
def both(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("account-tokens")
    with ExitStack() as running:
        for name in ("kubernetes", "podling"):
            (directory / name).mkdir()
        servers = (
            running.enter_context(control_plane.kubernetes(kubernetes_programs, directory / "kubernetes")),
            running.enter_context(control_plane.podling(directory / "podling")),
        )
        sides = []
        for server in servers:
            key = SigningKey.of_pem((server.kubeconfig.parent / "pki/service-accounts.key").read_bytes())
            sides.append(Side(server, key))
            server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            for path, body in OBJECTS:
                answer = server.ask("POST", path, body)
                assert answer.code == 201, answer
        yield Both((sides[0], sides[1]))


REQUESTED: Mapping[str, Any] = {
    "plain": {},
    "seconds": {"expirationSeconds": 600},
    "too short": {"expirationSeconds": 599},
    "too long": {"expirationSeconds": 1 << 33},
    "negative": {"expirationSeconds": -1},
    "audiences": {"audiences": ["a", "b"]},
    "empty audience": {"audiences": [""]},
    "pod": {"ref": {"kind": "Pod", "apiVersion": "v1", "name": "pod"}},
    "pod of volume": {"ref": {"kind": "Pod", "apiVersion": "v1", "name": "pod"}, "expirationSeconds": 3607},
    "free pod": {"ref": {"kind": "Pod", "apiVersion": "v1", "name": "free"}},
    "no version": {"ref": {"kind": "Pod", "name": "pod"}},
    "other pod": {"ref": {"kind": "Pod", "apiVersion": "v1", "name": "other"}},
    "pod not there": {"ref": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}},
    "pod without name": {"ref": {"kind": "Pod", "apiVersion": "v1"}},
    "pod of other uid": {"ref": {"kind": "Pod", "apiVersion": "v1", "name": "pod", "uid": "7"}},
    "node": {"ref": {"kind": "Node", "apiVersion": "v1", "name": "node"}},
    "node not there": {"ref": {"kind": "Node", "apiVersion": "v1", "name": "nope"}},
    "node of other uid": {"ref": {"kind": "Node", "apiVersion": "v1", "name": "node", "uid": "7"}},
    "secret": {"ref": {"kind": "Secret", "apiVersion": "v1", "name": "secret"}},
    "secret not there": {"ref": {"kind": "Secret", "apiVersion": "v1", "name": "nope"}},
    "config map": {"ref": {"kind": "ConfigMap", "apiVersion": "v1", "name": "a"}},
    "other version": {"ref": {"kind": "Pod", "apiVersion": "v2", "name": "pod"}},
    "group": {"ref": {"kind": "Pod", "apiVersion": "apps/v1", "name": "pod"}},
    "empty reference": {"ref": {"kind": ""}},
    "no account": {"account": "nope"},
}


@pytest.mark.parametrize("what", REQUESTED)
def test_what_is_asked_for(both: Both, what: str) -> None:
    def said(side: Side) -> Any:
        answer = side.request(**REQUESTED[what])
        if answer.code != 201:
            return answer.code, answer.body
        payload = answer.body["status"].pop("token").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "==="))
        claims["exp"] -= claims["iat"]
        claims["nbf"] -= claims["iat"]
        if "warnafter" in claims["kubernetes.io"]:
            claims["kubernetes.io"]["warnafter"] -= claims["iat"]
        del claims["iat"], answer.body["metadata"]
        return answer.code, claims, answer.body

    both.alike(said)


NAMED = {"name": "pod", "uid": "7"}
MADE: Mapping[str, Callable[[Side], str]] = {
    "good": lambda side: side.signed(),
    "expired": lambda side: side.signed(exp=int(time.time()) - 3600),
    "just expired": lambda side: side.signed(exp=int(time.time()) - 30),
    "not yet": lambda side: side.signed(nbf=int(time.time()) + 3600),
    "almost": lambda side: side.signed(nbf=int(time.time()) + 30),
    "issued later": lambda side: side.signed(iat=int(time.time()) + 3600),
    "no end": lambda side: side.signed(exp=None),
    "no beginning": lambda side: side.signed(nbf=None),
    "no time of issue": lambda side: side.signed(iat=None),
    "no id": lambda side: side.signed(jti=None),
    "times are texts": lambda side: side.signed(exp="soon"),
    "times are fractions": lambda side: side.signed(exp=time.time() + 99.5),
    "no issuer": lambda side: side.signed(iss=None),
    "other issuer": lambda side: side.signed(iss="https://other"),
    "no subject": lambda side: side.signed(sub=None),
    "other subject": lambda side: side.signed(sub="system:serviceaccount:default:default"),
    "any subject": lambda side: side.signed(sub="admin"),
    "no audience": lambda side: side.signed(aud=None),
    "empty audience": lambda side: side.signed(aud=[]),
    "an audience": lambda side: side.signed(aud=ISSUER),
    "other audience": lambda side: side.signed(aud=["x"]),
    "two audiences": lambda side: side.signed(aud=["x", ISSUER]),
    "nothing private": lambda side: side.signed(**{"kubernetes.io": None}),
    "empty private": lambda side: side.signed(**{"kubernetes.io": {}}),
    "other namespace": lambda side: side.bound(namespace="default"),
    "no account": lambda side: side.bound(serviceaccount={"name": "nope", "uid": "7"}),
    "other account": lambda side: side.bound(serviceaccount={"name": ACCOUNT, "uid": "7"}),
    "account without uid": lambda side: side.bound(serviceaccount={"name": ACCOUNT}),
    "pod": lambda side: side.bound(pod={"name": "pod", "uid": side.uid(f"{CORE}/pods/pod")}),
    "other pod": lambda side: side.bound(pod=NAMED),
    "no pod": lambda side: side.bound(pod={"name": "nope", "uid": "7"}),
    "node": lambda side: side.bound(node={"name": "node", "uid": side.uid("/api/v1/nodes/node")}),
    "other node": lambda side: side.bound(node={"name": "node", "uid": "7"}),
    "no node": lambda side: side.bound(node={"name": "nope", "uid": "7"}),
    "pod and other node": lambda side: side.bound(
        pod={"name": "pod", "uid": side.uid(f"{CORE}/pods/pod")}, node={"name": "nope", "uid": "7"}
    ),
    "secret": lambda side: side.bound(secret={"name": "secret", "uid": side.uid(f"{CORE}/secrets/secret")}),
    "other secret": lambda side: side.bound(secret={"name": "secret", "uid": "7"}),
    "no secret": lambda side: side.bound(secret={"name": "nope", "uid": "7"}),
    "other key": lambda side: SigningKey.made().sign(json.dumps(side.claims()).encode()),
    "tampered": lambda side: side.signed()[:-8] + "AAAAAAAA",
    "no token": lambda side: "nonsense",
    "two dots": lambda side: "a.b.c",
    "no signature": lambda side: side.signed().rpartition(".")[0] + ".",
    "no JSON": lambda side: side.key.sign(b"nonsense"),
    "legacy": lambda side: side.key.sign(
        json.dumps(
            {
                "iss": "kubernetes/serviceaccount",
                "kubernetes.io/serviceaccount/namespace": NAMESPACE,
                "kubernetes.io/serviceaccount/secret.name": "legacy",
                "kubernetes.io/serviceaccount/service-account.name": ACCOUNT,
                "kubernetes.io/serviceaccount/service-account.uid": side.uid(f"{ACCOUNTS}/{ACCOUNT}"),
                "sub": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
            }
        ).encode()
    ),
}


@pytest.mark.parametrize("what", MADE)
def test_what_is_recognised(both: Both, what: str) -> None:
    def told(side: Side) -> Any:
        token = MADE[what](side)
        said = [side.review(token, *audiences) for audiences in ((), ("own",), ("x",), ("x", "own"))]
        # podling knows nothing of tokens that are not bound to an account's uid.
        return said if what != "legacy" else [one.get("authenticated") for one in said]

    both.alike(told)


@pytest.mark.parametrize("what", MADE)
def test_who_may_do_something(both: Both, what: str) -> None:
    """By a request, whose answer says no more than that a token is not good."""

    def asked(side: Side) -> Any:
        token = MADE[what](side)
        stranger = msgspec.structs.replace(side.server, tls=ssl.create_default_context(cafile=side.server.ca))
        answer = stranger.ask("POST", WHO_AM_I, {}, Authorization=f"Bearer {token}")
        return answer.code, answer.body.get("message"), answer.body.get("status")

    both.alike(asked)


LATE = 100
"""Tokens."""
GONE = (
    ("pod", {"kind": "Pod", "apiVersion": "v1", "name": "free"}, f"{CORE}/pods", FREE_POD),
    ("secret", {"kind": "Secret", "apiVersion": "v1", "name": "secret"}, f"{CORE}/secrets", SECRET),
    ("account", None, ACCOUNTS, {"metadata": {"name": ACCOUNT}}),
)


@pytest.mark.parametrize(("what", "ref", "path", "body"), GONE, ids=[one[0] for one in GONE])
def test_a_token_dies_with_its_object(both: Both, what: str, ref: Any, path: str, body: Any) -> None:
    """At once, and is not good again with another object of the name. kube-apiserver keeps what it found out
    of a token for ten seconds, so only tokens that it has not seen are compared; and it may hear a moment
    later that the object is gone."""

    def told(side: Side) -> Any:
        wanted = 3 if side.server.name == "podling" else LATE
        seen, later, *tokens = (side.request(ref).body["status"]["token"] for _ in range(wanted))
        said = [side.review(seen).get("authenticated")]
        where = f"{path}/{body['metadata']['name']}"
        assert side.ask("DELETE", where, FORCED).code == 200
        reviews = map(side.review, tokens)
        said.append(next((one for one in reviews if not one.get("authenticated")), "alive"))
        assert side.ask("POST", path, body).code == 201
        if side.server.name == "podling":
            assert not side.review(seen).get("authenticated")
        return [*said, side.review(later)]

    first, *others = both.alike(told)
    assert first
    assert not any(one.get("authenticated") for one in others)


def test_a_pod_that_is_deleted_keeps_its_token_for_a_while(both: Both) -> None:
    def told(side: Side) -> Any:
        token = side.request({"kind": "Pod", "apiVersion": "v1", "name": "pod"}).body["status"]["token"]
        side.ask("DELETE", f"{CORE}/pods/pod", {"gracePeriodSeconds": 1})
        return side.review(token)

    assert both.alike(told)["authenticated"]
