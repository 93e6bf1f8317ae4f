"""Issue 13, audit: the same requests under the same policies make the same events.

A policy for each user is a rule of one policy, so one server of each is enough. Every request has an audit ID
of its own, by which its events are found in the log.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from peer import control_plane
from peer.escalations import EVE, OF_EVE, make_eve
from peer.masks import Masks
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, unlike
from peer.server import Server
from peer.test_authentication import WHO_AM_I
from peer.test_impersonation import GRANTS, WANTED, grant
from podling.machine.pki import Authority
from podling.model.types.rbac import MASTERS

LAST = {"level": "Metadata", "nonResourceURLs": ["/last"]}
ATTEMPTED = {"level": "Request", "users": [EVE]}
OTHERS: Sequence[dict[str, Any]] = ({"level": "None", "userGroups": [MASTERS]}, {"level": "RequestResponse"})
"""For those of no policy: the servers' own clients, and who is refused before anybody is known."""
WATCHED = "connecting"
CONNECTED = {"level": "Metadata", "users": [WATCHED]}
POLICIES: Mapping[str, Sequence[dict[str, Any]]] = {
    "answers": [{"level": "RequestResponse"}],
    "requests": [{"level": "Request", "omitStages": ["RequestReceived"]}],
    "metadata": [{"level": "Metadata"}],
    "lean": [{"level": "RequestResponse", "omitManagedFields": True, "omitStages": ["ResponseStarted"]}],
    "resources": [
        {"level": "None", "verbs": ["get"], "resources": [{"resources": ["pods"], "resourceNames": ["a"]}]},
        {"level": "Request", "resources": [{"resources": ["pods/ephemeralcontainers", "pods/eviction"]}]},
        {"level": "Metadata", "resources": [{"resources": ["*/exec", "*/log"]}]},
        {"level": "RequestResponse", "verbs": ["patch", "delete"], "resources": [{"resources": ["pods/*"]}]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps"]}]},
        {"level": "Request", "resources": [{"group": "apps"}, {"group": "*", "resources": ["deployments"]}]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/version"]},
        {"level": "Request", "namespaces": [""]},
        {"level": "Metadata", "resources": [{"resources": ["*"]}], "omitStages": ["ResponseComplete"]},
    ],
}
NOBODY = "nobody"
LOOKS = 500
PODS, SECRETS, MAPS = (f"/api/v1/namespaces/{{ns}}/{kind}" for kind in ("pods", "secrets", "configmaps"))
SPEC = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
EPHEMERAL = {"spec": {"ephemeralContainers": [{"name": "d", "image": "busybox", "stdin": True}]}}
ACCOUNT = "system:serviceaccount:default:nobody"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def patch(target: str, body: Any, media_type: str = MERGE_PATCH) -> Ask:
    return Ask("PATCH", target, body, {"Content_Type": media_type})


def shown_as(kind: str) -> dict[str, str]:
    return {"Accept": f"application/json;as={kind};v=v1;g=meta.k8s.io"}


ASKS: Sequence[Ask] = [
    Ask("POST", PODS, named("a", spec=SPEC)),
    Ask("POST", PODS, {"kind": "Pod", "apiVersion": "v1", **named("a", spec=SPEC)}, what="it is there"),
    Ask("POST", PODS, named("b"), {"Content_Type": "text/plain"}),
    Ask("POST", PODS, named("b", spec={"containers": []}), what="invalid"),
    Ask("POST", f"{PODS}?dryRun=All", {"metadata": {"generateName": "generated-"}, "spec": SPEC}),
    Ask("POST", f"{PODS}?dryRun=Some", named("b", spec=SPEC)),
    Ask("POST", f"{PODS}?fieldValidation=Strict", named("b", spec=SPEC, foo=1)),
    Ask("GET", f"{PODS}/a"),
    Ask("GET", f"{PODS}/nope"),
    Ask("GET", f"{PODS}/a", None, shown_as("PartialObjectMetadata")),
    Ask("GET", f"{PODS}/a", None, {"Accept": "application/yaml"}),
    Ask("GET", f"{PODS}/a?pretty=true"),
    Ask("GET", f"{PODS}?limit=1"),
    Ask("GET", f"{PODS}?labelSelector=a%3Db"),
    Ask("GET", f"{PODS}?labelSelector=%3D%3D"),
    Ask("GET", f"{PODS}?watch=1&timeoutSeconds=1"),
    patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, STRATEGIC_PATCH),
    patch(f"{PODS}/a", {"metadata": {"labels": {"x": "z"}}}),
    patch(f"{PODS}/a", [{"op": "add", "path": "/metadata/labels/y", "value": "z"}], JSON_PATCH),
    patch(f"{PODS}/a?dryRun=All", {"metadata": {"labels": {"x": "w"}}}),
    patch(f"{PODS}/a?force=true", {"metadata": {"labels": {"x": "w"}}}),
    patch(f"{PODS}/a/ephemeralcontainers", EPHEMERAL, STRATEGIC_PATCH),
    patch(f"{MAPS}/m?fieldManager=me", {"apiVersion": "v1", "kind": "ConfigMap", **named("m")}, APPLY),
    patch(f"{MAPS}/m", {"apiVersion": "v1", "kind": "ConfigMap", **named("m")}, APPLY),
    Ask("PUT", f"{MAPS}/m", {"metadata": {"name": "m", "resourceVersion": "1"}, "data": {"a": "b"}}),
    Ask("PUT", f"{MAPS}/m", named("m", data={"a": "b"})),
    Ask("PUT", f"{MAPS}/m", named("n"), what="another name"),
    Ask("PUT", MAPS, named("m")),
    Ask("POST", SECRETS, named("s", stringData={"password": "plain"})),
    Ask("GET", f"{SECRETS}/s"),
    Ask("GET", SECRETS),
    Ask("GET", f"{PODS}/a/exec?command=ls&container=c"),
    Ask("GET", f"{PODS}/a/exec?command=ls&container=c", None, UPGRADE),
    Ask("POST", f"{PODS}/nope/attach"),
    Ask("GET", f"{PODS}/nope/portforward"),
    Ask("GET", f"{PODS}/nope/log"),
    Ask("GET", f"{PODS}/nope/proxy/a/b?c=d"),
    Ask("POST", f"{PODS}/a/eviction?dryRun=All", named("a")),
    Ask("POST", f"{PODS}/nope/binding", named("nope", target={"name": "n"})),
    Ask("GET", f"{PODS}/a/status"),
    patch("/apis/apps/v1/namespaces/{ns}/deployments/d/scale", {"spec": {"replicas": 2}}),
    Ask("GET", "/api/v1/nodes/nope"),
    Ask("GET", "/apis/none/v1/things"),
    Ask("GET", "/api/v1/things"),
    Ask("OPTIONS", PODS),
    Ask("HEAD", f"{PODS}/a"),
    Ask("GET", "/healthz"),
    Ask("GET", "/healthz/ping?verbose"),
    Ask("GET", "/nowhere"),
    Ask("POST", "/nowhere", {}),
    # Before those that are allowed in another way: Kubernetes tries first what it did last.
    Ask("GET", PODS, None, {"Impersonate_User": ACCOUNT}),
    Ask("DELETE", f"{MAPS}/m", None, {"Impersonate_User": ACCOUNT}),
    Ask("GET", PODS, None, {"Impersonate_User": "bob", "Impersonate_Group": MASTERS}),
    Ask("GET", PODS, None, {"Impersonate_User": "bob", "Impersonate_Group": MASTERS, "Impersonate_Uid": "1"}),
    Ask("GET", PODS, None, {"Impersonate_Group": "g"}),
    Ask("GET", f"{PODS}/a", None, {"X_Forwarded_For": "1.2.3.4, x, 10.0.0.1", "X_Real_Ip": "4.3.2.1"}),
    Ask("GET", f"{PODS}/a", None, {"User_Agent": "x" * 2000}),
    Ask("GET", f"{PODS}/%61?x=%41"),
    Ask("DELETE", f"{PODS}/nope", {"gracePeriodSeconds": 0}),
    Ask("DELETE", f"{PODS}/a?dryRun=All", {"kind": "DeleteOptions", "apiVersion": "v1"}),
    Ask("DELETE", f"{PODS}/a", {"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
    Ask("DELETE", f"{MAPS}/m"),
    Ask("DELETE", f"{SECRETS}?labelSelector=none%3Dsuch"),
]
WITHOUT_A_USER: Sequence[Ask] = [
    Ask("GET", "/api/v1/namespaces/default/pods"),
    Ask("GET", "/api/v1/namespaces/default/pods", None, {"Authorization": "Bearer wrong"}),
    Ask("POST", "/api/v1/namespaces/default/pods", named("a"), {"Authorization": "Bearer wrong"}),
    Ask("GET", "/metrics", None, {"Authorization": "Bearer wrong"}),
    Ask("GET", "/api/v1/namespaces/default/pods/a/exec?command=ls"),
]


class Logged(NamedTuple):
    """A server whose audit log is at `log`."""

    server: Server
    log: Path

    def events(self, asks: Sequence[Ask], user: str, *groups: str) -> list[list[Any]]:
        """The events of each request of a user, masked."""
        ids = [f"{user}-{number}" for number in range(len(asks))]
        before = self.log.stat().st_size if self.log.exists() else 0
        with self._asking(user, groups) as asking:
            for ask, audit_id in zip(asks, ids, strict=True):
                asking.ask(
                    ask.method, ask.target.replace("{ns}", user), ask.body, **ask.headers, Audit_ID=audit_id
                )
            asking.ask("GET", "/last", Audit_ID=f"{user}-last")
        found: dict[str, list[Any]] = {audit_id: [] for audit_id in ids}
        for event in self._until(f"{user}-last", before):
            if event["auditID"] in found:
                found[event["auditID"]].append(event)
        masks = Masks()
        return [masks.masked(events) for events in found.values()]

    def until(self, user: str, target: str, code: int) -> None:
        """Ask again and again until that is answered: Kubernetes takes a moment to act on policies."""
        with self._asking(user, [MASTERS]) as asking:
            for _ in range(LOOKS):
                if asking.ask("GET", target).code == code:
                    return
                threading.Event().wait(0.02)
        raise AssertionError(f"{self.server.name} never answers {code}")

    def _asking(self, user: str, groups: Sequence[str]) -> Any:
        pki = self.server.ca.parent
        tls = ssl.create_default_context(cafile=str(self.server.ca))
        if user != NOBODY:
            pair = Authority(pki, datetime.now(UTC)).client(user, user, groups)
            tls.load_cert_chain(pair.certificate, pair.key)
        return msgspec.structs.replace(self.server, tls=tls).asking()

    def _until(self, last: str, before: int) -> list[Any]:
        """All events beyond the first `before` bytes of the log, once those of the request `last` are there:
        it is the last one."""
        for _ in range(LOOKS):
            lines = self.log.read_bytes()[before:].splitlines(keepends=True) if self.log.exists() else []
            events = [json.loads(line) for line in lines if line.endswith(b"\n")]
            if any(event["auditID"] == last for event in events):
                return events
            # Whoever answers has had time to write.
            self.server.ask("GET", "/readyz")
        raise AssertionError(f"{self.log} has no event of {last}")


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Logged, Logged]]:
    """Kubernetes and podling with the same policy."""
    rules = [{**rule, "users": [user]} for user, rules in POLICIES.items() for rule in rules]
    directory = tmp_path_factory.mktemp("audit")
    policy = directory / "policy.yaml"
    made = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [LAST, ATTEMPTED, CONNECTED, *rules, *OTHERS],
    }
    policy.write_text(yaml.safe_dump(made))
    logs = [directory / f"{name}.log" for name in ("kubernetes", "podling")]
    flags = [(f"--audit-policy-file={policy}", f"--audit-log-path={log}") for log in logs]
    with ExitStack() as running:
        kubernetes = control_plane.kubernetes(kubernetes_programs, tmp_path_factory.mktemp("k"), *flags[0])
        podling = control_plane.podling(tmp_path_factory.mktemp("p"), *flags[1])
        servers = [running.enter_context(server) for server in (kubernetes, podling)]
        for server in servers:
            for user in POLICIES:
                server.ask("POST", "/api/v1/namespaces", named(user))
                server.ask("POST", f"/api/v1/namespaces/{user}/serviceaccounts", named("default"))
        yield Logged(servers[0], logs[0]), Logged(servers[1], logs[1])


@pytest.mark.parametrize("user", [*POLICIES, NOBODY])
def test_the_same_is_recorded(both: tuple[Logged, Logged], user: str) -> None:
    asks = WITHOUT_A_USER if user == NOBODY else ASKS
    theirs, ours = (logged.events(asks, user, MASTERS) for logged in both)
    assert not (different := _different(asks, theirs, ours)), different


def test_each_attempt_at_more_rights_is_recorded(both: tuple[Logged, Logged]) -> None:
    """Issue 13's proof: what is refused is written down, with who it was, what he sent and why not."""
    for logged in both:
        make_eve(logged.server)
    asks = [Ask(one.method, one.target, one.body, one.headers, name) for name, one in OF_EVE.items()]
    theirs, ours = (logged.events(asks, EVE) for logged in both)
    assert not (different := _different(asks, theirs, ours)), different
    for ask, events in zip(asks, ours, strict=True):
        last = events[-1]
        assert (last["level"], last["user"]["username"]) == ("Request", EVE), ask
        assert last["responseStatus"]["code"] in (403, 404), ask
        if last["responseStatus"]["code"] == 403:
            assert {"authorization.k8s.io/decision", "authorization.k8s.io/reason"} <= {*last["annotations"]}


def _different(asks: Sequence[Ask], theirs: Sequence[Any], ours: Sequence[Any]) -> str:
    return "\n".join(
        f"{ask.method} {ask.target} {ask.what}\n    {path}: {their!r} is here {our!r}"
        for ask, one, other in zip(asks, theirs, ours, strict=True)
        for path, their, our in unlike(one, other, "")
    )


REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CONNECTS = ("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy")
CONNECTION_POLICY = {
    "matchConstraints": {
        "resourceRules": [
            {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [*CONNECTS]}
        ]
    },
    "matchConditions": [{"name": "his", "expression": f"request.userInfo.username == '{WATCHED}'"}],
    "validations": [
        {
            "expression": "!request.name.startsWith('denied')",
            "messageExpression": "request.name + ' is not connected to by ' + request.subResource",
        }
    ],
    "auditAnnotations": [
        {"key": "what", "valueExpression": "object.kind + ' ' + request.operation + ' ' + request.name"},
        {"key": "never", "valueExpression": "null"},
    ],
}


def _connections() -> Iterator[Ask]:
    for method, path in (
        ("GET", "pods/{}/exec?command=ls&container=c"),
        ("POST", "pods/{}/exec?command=ls&stdin=true"),
        ("GET", "pods/{}/attach?stdout=true"),
        ("GET", "pods/{}/portforward?ports=80"),
        ("GET", "pods/{}/proxy/a/b"),
        ("POST", "services/{}:80/proxy/x"),
    ):
        for name in ("denied", "let-through"):
            yield Ask(method, f"/api/v1/namespaces/{{ns}}/{path.format(name)}")
    for name in ("denied", "let-through"):
        yield Ask("GET", f"/api/v1/nodes/{name}/proxy/pods")


def test_what_policies_find_at_connections_is_recorded(both: tuple[Logged, Logged]) -> None:
    """Annotations of exec, attach, port-forward and proxy, of those that are refused and of those that are
    not and find nobody."""
    binding = {"policyName": WATCHED, "validationActions": ["Deny", "Audit"]}
    for logged in both:
        for kind, spec in (("policies", CONNECTION_POLICY), ("policybindings", binding)):
            target = f"{REGISTRATION}/validatingadmission{kind}"
            assert logged.server.ask("POST", target, named(WATCHED, spec=spec)).code == 201
        logged.until(WATCHED, "/api/v1/namespaces/default/pods/denied/attach", 422)
    asks = [*_connections()]
    theirs, ours = (logged.events(asks, WATCHED, MASTERS) for logged in both)
    assert not (different := _different(asks, theirs, ours)), different
    notes = [{**events[-1].get("annotations", {})} for events in ours]
    assert any(f"{WATCHED}/what" in note for note in notes), notes


ACTING = ("everything", "legacy", "any-info", "info-without-action", "arbitrary", "accounts")
"""Groups, by what they may act as."""


@pytest.mark.parametrize("group", ACTING)
def test_who_is_acted_as_is_recorded_alike(both: tuple[Logged, Logged], group: str) -> None:
    """Users, groups, uids, extras, accounts and nodes, by rights of both kinds, for objects and connections.
    Each asks for the first time: Kubernetes tries first what it did last."""
    asks: dict[str, list[Ask]] = {}
    for number, (what, wanted) in enumerate(WANTED.items()):
        headers = {name.replace("-", "_"): value for name, value in wanted}
        # `Ask` has each header once.
        if len(headers) == len(wanted):
            asks[f"{group}-{number}"] = [
                Ask("POST", WHO_AM_I, {}, headers, what),
                Ask("GET", "/api/v1/namespaces/default/pods/nope/exec?command=ls", None, headers, what),
            ]
    for logged in both:
        grant(logged.server, group, GRANTS[group])
    differences = []
    acted = 0
    for user, one in asks.items():
        theirs, ours = (logged.events(one, user, group) for logged in both)
        differences.append(_different(one, theirs, ours))
        acted += any("impersonatedUser" in event for events in ours for event in events)
    assert not (different := "".join(differences)), different
    assert len(asks) > 30
    assert bool(acted) is (group != "info-without-action")


LONG: Sequence[Ask] = [
    Ask("POST", MAPS, named("short", data={"a": "b"})),
    Ask("POST", MAPS, named("long", data={"a": "b" * 3000}), {"User_Agent": "x"}),
    Ask("GET", f"{MAPS}/long?a={'b' * 3000}", None, {"User_Agent": "x"}, what="lost"),
    Ask("GET", f"{MAPS}/long", None, {"User_Agent": "x"}),
]


def test_what_is_too_long_is_truncated_alike(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user, told = "answers", []
    policy = tmp_path_factory.mktemp("truncated") / "policy.yaml"
    rules = [LAST, {"level": "RequestResponse", "users": [user]}, {"level": "None"}]
    policy.write_text(yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    for name in ("kubernetes", "podling"):
        directory = tmp_path_factory.mktemp(name)
        log = directory / "audit.log"
        flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-compress"]
        flags += ["--audit-log-truncate-enabled", "--audit-log-truncate-max-event-size=2500"]
        running = (
            control_plane.kubernetes(kubernetes_programs, directory, *flags)
            if name == "kubernetes"
            else control_plane.podling(directory, *flags)
        )
        with running as server:
            server.ask("POST", "/api/v1/namespaces", named(user))
            told.append(Logged(server, log).events(LONG, user, MASTERS))
    theirs, ours = told
    assert not (different := _different(LONG, theirs, ours)), different
    assert [bool(events) for events in ours] == [True, True, False, True]


def test_what_cannot_be_recorded_is_refused_alike(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In the mode `blocking-strict`, with a disk that is full."""
    user, told = "strict", []
    policy = tmp_path_factory.mktemp("strict") / "policy.yaml"
    rules = [{"level": "Metadata", "users": [user]}, {"level": "None"}]
    policy.write_text(yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    flags = [
        f"--audit-policy-file={policy}",
        "--audit-log-path=/dev/full",
        "--audit-log-mode=blocking-strict",
    ]
    asks = [Ask("GET", PODS), Ask("POST", MAPS, named("m")), Ask("GET", "/version"), Ask("GET", "/nowhere")]
    for name in ("kubernetes", "podling"):
        directory = tmp_path_factory.mktemp(name)
        running = (
            control_plane.kubernetes(kubernetes_programs, directory, *flags)
            if name == "kubernetes"
            else control_plane.podling(directory, *flags)
        )
        with running as server, Logged(server, Path("/dev/full"))._asking(user, [MASTERS]) as asking:
            answers = [
                asking.ask(ask.method, ask.target.replace("{ns}", "default"), ask.body) for ask in asks
            ]
            assert server.ask("GET", f"{MAPS.replace('{ns}', 'default')}/m").code == 404
        told.append([(answer.code, answer.body) for answer in answers])
    assert told[1] == told[0]
    assert {code for code, _ in told[1]} == {500}
