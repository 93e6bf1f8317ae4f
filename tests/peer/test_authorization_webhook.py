"""Issue 13, authorization by webhooks: both servers ask the same webhooks the same, and make the same of what
these answer. Each is configured by the same file, or by the same flags."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from peer import control_plane
from peer.agreed import differences, told_at_start
from peer.authorization_configurations import ACCEPTED, HEAD, REFUSED
from peer.named_differences import AUTHORIZATION
from peer.server import Server
from podling.apiserver.rules.authorization import read_configuration
from podling.apiserver.rules.configuration_file import ConfigurationError
from podling.machine.pki import Authority

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
LISTED = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
LOOKS = 900


class Raw(NamedTuple):
    """What is answered in place of a SubjectAccessReview."""

    body: bytes = b""
    code: int = 200
    media_type: str = "application/json"


ANSWERS: Mapping[str, Any] = {
    "allowed": {"allowed": True},
    "allowed-why": {"allowed": True, "reason": "because"},
    "denied": {"allowed": False, "denied": True, "reason": "never"},
    "both": {"allowed": True, "denied": True, "reason": "both"},
    "none": {"allowed": False},
    "none-why": {"allowed": False, "reason": "not mine"},
    "told": {"allowed": False, "evaluationError": "out of luck"},
    "empty": Raw(),
    "braces": Raw(b"{}"),
    "null": Raw(b"null"),
    "list": Raw(b"[]"),
    "text": Raw(b"yes", 200, "text/plain"),
    "text-type": Raw(
        b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}',
        200,
        "text/plain",
    ),
    "no-kind": Raw(b'{"status":{"allowed":true}}'),
    "other-kind": Raw(
        b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"allowed":true}}'
    ),
    "other-version": Raw(
        b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}'
    ),
    "wrong-type": Raw(
        b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":"yes"}}'
    ),
    "unknown-field": Raw(
        b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","x":1,"status":{"allowed":true}}'
    ),
    "201": Raw(
        b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}',
        201,
    ),
    "204": Raw(b"", 204),
    "400": Raw(b"no", 400, "text/plain"),
    "401": Raw(b"no", 401, "text/plain"),
    "403": Raw(b"no", 403, "text/plain"),
    "404": Raw(b"no", 404, "text/plain"),
    "503": Raw(b"no", 503, "text/plain"),
}
"""By what the users' names begin with."""


class Webhook:
    """What each server asked, by its name."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: dict[str, list[Any]] = defaultdict(list)


def _user(review: Any) -> str:
    return re.sub(r"-\d+$", "", review["spec"].get("user", ""))


@contextmanager
def listening(
    directory: Path, answers: Mapping[str, Any] = ANSWERS, named: Callable[[Any], str] = _user
) -> Iterator[Webhook]:
    """Answers a review with the status or the answer that has its name; who `hangs` or `closes` gets none."""
    authority = Authority(directory / "webhook", datetime.now(UTC))
    pair = authority.server("webhook", "webhook", ["127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    ending = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None: ...

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            who, _, query = self.path.removeprefix("/").partition("?")
            heads = {name: self.headers[name] for name in ("Content-Type",) if name in self.headers}
            webhook.asked[who].append({"query": query, "headers": heads, "review": review})
            name = named(review)
            if name == "hangs":
                ending.wait(20)
                return
            if name == "closes":
                self.close_connection = True
                return
            answer = answers.get(name, {"allowed": False})
            if not isinstance(answer, Raw):
                told = {key: review[key] for key in ("kind", "apiVersion", "spec")}
                answer = Raw(json.dumps({**told, "status": answer}).encode())
            self.send_response(answer.code)
            self.send_header("Content-Type", answer.media_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(answer.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    webhook = Webhook(f"https://127.0.0.1:{server.server_address[1]}")
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield webhook
    finally:
        ending.set()
        server.shutdown()
        server.server_close()


def kubeconfig(file: Path, url: str, authority: Path | None) -> Path:
    cluster = {"server": url} | ({"certificate-authority": str(authority)} if authority else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "w", "cluster": cluster}],
        "users": [{"name": "w", "user": {}}],
        "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        "current-context": "w",
    }
    file.write_text(yaml.safe_dump(config))
    return file


class Both(NamedTuple):
    servers: tuple[Server, Server]
    webhook: Webhook
    files: tuple[Path, Path]

    def each(self, ask: Any) -> list[Any]:
        with ThreadPoolExecutor(2) as two:
            return list(two.map(ask, self.servers))


def hook(file: Path, name: str, **more: Any) -> Any:
    settings = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(file)},
        **more,
    }
    return {"type": "Webhook", "name": name, "webhook": settings}


NOT_ASKED = [
    {"expression": "!request.user.startsWith('system:')"},
    {"expression": "!('unasked' in request.groups)"},
    {"expression": "!has(request.resourceAttributes) || request.resourceAttributes.resource != 'unasked'"},
    {"expression": "request.user != 'broken' || request.resourceAttributes.namespace == 'x'"},
]


@pytest.fixture(scope="module")
def both(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("webhooks")
    with ExitStack() as running:
        webhook = running.enter_context(listening(directory))
        authority, files, flags = directory / "webhook/ca.crt", [], {}
        for name in ("kubernetes", "podling"):
            (directory / name).mkdir()
            first = kubeconfig(directory / f"{name}-first.conf", f"{webhook.url}/{name}-first", authority)
            last = kubeconfig(directory / f"{name}-last.conf", f"{webhook.url}/{name}-last", authority)
            gone = kubeconfig(directory / f"{name}-gone.conf", "https://127.0.0.1:1/", None)
            about_gone = [{"expression": "'gone' in request.groups"}]
            steps = [
                {"type": "Node", "name": "node"},
                hook(first, "first", matchConditions=NOT_ASKED, authorizedTTL="1h", unauthorizedTTL="1h"),
                hook(gone, "gone.example", matchConditions=about_gone, failurePolicy="NoOpinion"),
                {"type": "RBAC", "name": "rbac"},
                hook(
                    last,
                    "last",
                    failurePolicy="NoOpinion",
                    timeout="1500ms",
                    cacheAuthorizedRequests=False,
                    cacheUnauthorizedRequests=False,
                ),
            ]
            files.append(directory / f"{name}.yaml")
            files[-1].write_text(yaml.safe_dump({**HEAD, "authorizers": steps}))
            flags[name] = f"--authorization-config={files[-1]}"
        both = control_plane.kubernetes(kubernetes_programs, directory / "kubernetes", flags["kubernetes"])
        ours = control_plane.podling(directory / "podling", flags["podling"])
        servers = running.enter_context(both), running.enter_context(ours)
        yield Both(servers, webhook, (files[0], files[1]))


def review(user: str, groups: list[str] | None = None, **asked: Any) -> Any:
    spec: dict[str, Any] = {"user": user, **({"groups": groups} if groups else {})}
    if "path" in asked:
        spec["nonResourceAttributes"] = asked
    else:
        spec |= {key: asked.pop(key) for key in ("uid", "extra") if key in asked}
        spec["resourceAttributes"] = {"verb": "get", "resource": "pods", "namespace": "x", **asked}
    return {"spec": spec}


FIELDS = {
    "requirements": [
        {"key": "a", "operator": "In", "values": ["b"]},
        {"key": "c", "operator": "NotIn", "values": ["e", "d"]},
    ]
}
QUESTIONS: Mapping[str, Any] = {
    **{name: review(name) for name in (*ANSWERS, "hangs", "closes")},
    **{f"{name} path": review(name, path="/x", verb="get") for name in ("allowed", "denied", "none", "both")},
    "cached": review("allowed"),
    "cached none": review("none-why"),
    "system": review("system:denied"),
    "group": review("denied", ["unasked"]),
    "resource": review("denied", resource="unasked"),
    "broken": review("broken", path="/x", verb="get"),
    "gone": review("none-5", ["gone"]),
    "whole": review(
        "none-1",
        ["b", "a"],
        uid="7",
        extra={"B": ["2", "1"], "a": ["x"]},
        group="apps",
        version="v1",
        resource="deployments",
        subresource="scale",
        name="n",
    ),
    "fields": review("none-2", verb="list", fieldSelector=FIELDS),
    "raw fields": review("none-3", verb="list", fieldSelector={"rawSelector": "a=b,c!=d,e==f"}),
    "raw labels": review(
        "none-4", verb="list", labelSelector={"rawSelector": "a=b,c!=d,e in (g,f),h notin (i),j,!k,l>1"}
    ),
    "labels": review(
        "none-6",
        verb="watch",
        labelSelector={
            "requirements": [
                {"key": "a", "operator": "In", "values": ["c", "b"]},
                {"key": "d", "operator": "Exists"},
            ]
        },
    ),
    "unreadable fields": review("none-7", verb="list", fieldSelector={"rawSelector": "a=b,c"}),
    "unreadable labels": review("none-8", verb="list", labelSelector={"rawSelector": "a in (b"}),
    "unknown operator": review(
        "none-9",
        verb="list",
        fieldSelector={"requirements": [{"key": "a", "operator": "Like", "values": ["b"]}]},
    ),
    "unknown label operator": review(
        "none-9",
        verb="list",
        labelSelector={
            "requirements": [
                {"key": "a", "operator": "Like", "values": ["b"]},
                {"key": "c", "operator": "Exists"},
            ]
        },
    ),
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_what_a_webhook_says_counts(both: Both, what: str) -> None:
    both.webhook.asked.clear()
    theirs, ours = both.each(lambda server: server.ask("POST", REVIEWS, QUESTIONS[what]))
    assert (theirs.code, _masked(both, theirs.body.get("status", theirs.body))) == (
        ours.code,
        _masked(both, ours.body.get("status", ours.body)),
    )
    for which in ("first", "last"):
        assert both.webhook.asked[f"kubernetes-{which}"] == both.webhook.asked[f"podling-{which}"]


def _masked(both: Both, said: Any) -> Any:
    told = json.dumps(said, sort_keys=True)
    told = re.sub(r"json parse error: .*?}?\"(?=[,}])", 'json parse error"', told)
    # Which of its two clocks ends first is Go's affair.
    told = re.sub(r" \(Client.Timeout exceeded while awaiting headers\)", "", told)
    told = re.sub(r"net/http: request canceled|context deadline exceeded", "late", told)
    return re.sub(r"/(kubernetes|podling)-", "/", told)


REQUESTS = {
    "allowed": ("GET", "/api/v1/namespaces/x/pods"),
    "allowed-why": ("GET", "/api/v1/namespaces/x/pods/y"),
    "denied": ("GET", "/api/v1/namespaces/x/pods"),
    "none-why": ("GET", "/api/v1/namespaces/x/pods"),
    "both": ("GET", "/api/v1/pods?watch=1&timeoutSeconds=1"),
    "closes": ("GET", "/api/v1/namespaces/x/pods?a=<b>&c"),
    "404": ("DELETE", "/apis/apps/v1/namespaces/x/deployments/z"),
    "none-11": (
        "GET",
        "/api/v1/namespaces/x/pods?labelSelector=a%3Db,c!%3Dd&fieldSelector=spec.nodeName%3Dn",
    ),
    "none-12": ("GET", "/api/v1/watch/namespaces/x/pods?fieldSelector=metadata.name%3Dn"),
    "none-13": ("GET", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dn&labelSelector=a"),
    "none-14": ("DELETE", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dn&labelSelector=a"),
    "none-15": ("GET", "/api/v1/namespaces/x/pods/p?fieldSelector=metadata.name%3Dn&labelSelector=a"),
    "none-16": ("GET", "/api/v1/namespaces/x/pods?labelSelector=a%20in%20(&fieldSelector=b"),
    "none-17": ("POST", "/api/v1/namespaces/x/pods/p/exec?command=a"),
    "none-18": ("GET", "/metrics"),
}


@pytest.mark.parametrize("user", REQUESTS)
def test_requests_are_judged_alike(both: Both, user: str) -> None:
    method, target = REQUESTS[user]
    both.webhook.asked.clear()
    theirs, ours = both.each(
        lambda server: server.ask(method, target, Impersonate_User=f"{user}", Impersonate_Group="devs")
    )
    assert (theirs.code, theirs.headers.get("Content-Type")) == (ours.code, ours.headers.get("Content-Type"))
    if theirs.code >= 400:
        assert _masked(both, theirs.body) == _masked(both, ours.body)
    for which in ("first", "last"):
        assert both.webhook.asked[f"kubernetes-{which}"] == both.webhook.asked[f"podling-{which}"]


def test_rules_are_listed_alike(both: Both) -> None:
    theirs, ours = both.each(
        lambda server: server.ask("POST", LISTED, {"spec": {"namespace": "x"}}, Impersonate_User="none").body
    )
    for key in ("incomplete", "evaluationError"):
        assert theirs["status"].get(key) == ours["status"].get(key)


NAMES = re.compile(r"^(apiserver_authorization_\w+)\{([^}]*)\}", re.MULTILINE)


def test_metrics_have_the_same_names(both: Both) -> None:
    """After the questions above."""
    theirs, ours = both.each(lambda server: _series(server.ask("GET", "/metrics").body))
    assert ours == theirs


def _series(text: str) -> set[tuple[str, str]]:
    found = set()
    for name, labels in NAMES.findall(text):
        kept = [
            one for one in labels.split(",") if not one.startswith(("le=", "apiserver_id_hash=", "hash="))
        ]
        found.add((name, ",".join(sorted(kept))))
    return found


def _of(*types: str) -> list[dict[str, str]]:
    return [{"type": one, "name": one.lower()} for one in types]


# Each is of the same form as the one before but for what it says, and neither server restarts.
CHANGES = [
    _of("RBAC", "Node", "AlwaysAllow"),
    _of("AlwaysAllow"),
    _of("RBAC", "AlwaysAllow"),
    _of("RBAC", "Node", "RBAC"),
    _of("Node", "RBAC"),
    [],
    _of("Node", "RBAC", "AlwaysDeny"),
    _of("Node", "RBAC", "AlwaysAllow"),
]


def test_a_file_that_changes_is_read_again(both: Both) -> None:
    """Last: nobody is asked any more afterwards. Both see a file that takes the place of another at once,
    keep what they have when it cannot be used, and when it leaves out what they began with."""
    told: list[list[Any]] = [[], []]
    for number, change in enumerate(CHANGES):
        for file in both.files:
            other = file.with_suffix(".new")
            other.write_text(yaml.safe_dump({**HEAD, "authorizers": change}))
            other.rename(file)
        both.each(partial(_until, number + 1))
        for which, answers in zip(both.each(_reloaded), told, strict=True):
            answers.append(which)
    assert told[0] == told[1]
    assert told[1][-1] == {"success": 4, "failure": 4, "allowed": True}


def _reloaded(server: Server) -> dict[str, Any]:
    status = server.ask("POST", REVIEWS, QUESTIONS["denied"]).body["status"]
    return {**_reloads(server), "allowed": status["allowed"]}


RELOADS = re.compile(r'automatic_reloads_total\{.*status="(\w+)"\} (\d+)')


def _reloads(server: Server) -> dict[str, int]:
    lines = server.ask("GET", "/metrics").body.splitlines()
    return {found[1]: int(found[2]) for line in lines if (found := RELOADS.search(line))}


def _until(count: int, server: Server) -> None:
    for _ in range(LOOKS):
        if sum(_reloads(server).values()) >= count:
            return
        threading.Event().wait(0.05)
    raise RuntimeError(f"{server.name} did not read the file again")


@pytest.fixture(scope="module")
def flagged(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("flagged")
    with ExitStack() as running:
        webhook = running.enter_context(listening(directory))
        flags, files = {}, []
        for name in ("kubernetes", "podling"):
            (directory / name).mkdir()
            file = directory / f"{name}.conf"
            files.append(kubeconfig(file, f"{webhook.url}/{name}-first", directory / "webhook/ca.crt"))
            flags[name] = [
                "--authorization-mode=Node,Webhook,RBAC",
                f"--authorization-webhook-config-file={file}",
                "--authorization-webhook-cache-unauthorized-ttl=0s",
            ]
        theirs = control_plane.kubernetes(kubernetes_programs, directory / "kubernetes", *flags["kubernetes"])
        ours = control_plane.podling(directory / "podling", *flags["podling"])
        servers = running.enter_context(theirs), running.enter_context(ours)
        yield Both(servers, webhook, (files[0], files[1]))


@pytest.mark.parametrize(
    "what", ["allowed", "denied", "none", "group", "whole", "404", "cached", "other-version"]
)
def test_flags_configure_a_webhook(flagged: Both, what: str) -> None:
    test_what_a_webhook_says_counts(flagged, what)


OTHERWISE = dict(AUTHORIZATION.what)


def test_what_no_server_is_started_with(kubernetes_programs: Path, tmp_path: Path) -> None:
    Authority(tmp_path, datetime.now(UTC)).client("service-accounts", "service-accounts")

    def ask(name: str) -> str:
        file = tmp_path / f"{name.replace(' ', '-')}.yaml"
        file.write_text(yaml.safe_dump(REFUSED[name]))
        said = told_at_start(kubernetes_programs, tmp_path, authorization_config=file)
        if said.startswith("<"):
            whole = "\n".join(line.removeprefix("\t") for line in said[2:].rstrip().splitlines()[:-1])
        else:
            whole = msgspec.json.decode(said, type=str)
        return whole.partition(" in scheme ")[0].rstrip("\n")

    ours = {name: _told_by_podling(REFUSED[name]) for name in REFUSED if name not in OTHERWISE}
    assert not differences("authorization", kubernetes_programs, REFUSED, ours, ask)
    for name, said in OTHERWISE.items():
        assert said in _told_by_podling(REFUSED[name])


def _told_by_podling(configuration: Any) -> str:
    try:
        read_configuration(msgspec.json.encode(configuration))
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_server_is_started_with(name: str) -> None:
    assert _told_by_podling(ACCEPTED[name]) == ""
