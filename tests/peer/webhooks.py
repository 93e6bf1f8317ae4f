"""Admission webhooks for the servers under test: one HTTPS server that answers as it is told, and keeps what
it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from peer.masks import Masks
from peer.sequence import Ask, Found, answer_of, make_namespace, plain, unlike
from peer.server import Answer, Server

GROUP = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    # In this order: what changes may refuse the probe of what validates.
    "validating": ("ValidatingWebhookConfiguration", f"{GROUP}/validatingwebhookconfigurations"),
    "mutating": ("MutatingWebhookConfiguration", f"{GROUP}/mutatingwebhookconfigurations"),
}
LOOKS = 400
ALLOWED: Mapping[str, Any] = MappingProxyType({"allowed": True})
JSON = {"Content-Type": "application/json"}
PROBE = {"probe": "yes"}


class Raw(msgspec.Struct, frozen=True):
    """What is answered in place of an AdmissionReview. `{uid}` in the body is that of the request."""

    body: str = ""
    code: int = 200
    headers: Mapping[str, str] = {}
    hangs: bool = False
    closes: bool = False
    repeated: int = 1
    wire: str = ""
    """In place of all that, what is written as it is, before the connection ends."""
    dripping: bool = False
    """Whether the body comes a byte every tenth of a second."""


class Hook(msgspec.Struct, frozen=True):
    """One webhook: what it is asked about, and what it answers (`response` without the uid). Further fields
    of its configuration are `fields`, as they are written there."""

    resources: Sequence[str]
    response: Mapping[str, Any] | Raw = ALLOWED
    sort: str = "mutating"
    operations: Sequence[str] = ("*",)
    patch: Sequence[Mapping[str, Any]] | str | None = None
    fields: Mapping[str, Any] = {}
    rule: Mapping[str, Any] = {}
    name: str = ""


class Hooked(msgspec.Struct, frozen=True):
    """What is asked in a row while these webhooks are in force."""

    name: str
    hooks: Sequence[Hook]
    asks: Sequence[Ask]
    before: Sequence[Ask] = ()
    """Asked before the webhooks are in force; the answers are not compared, but can be named, from 0."""


class Listener:
    """Listens on loopback. The path of a request is `/WHO/SEQUENCE/INDEX`."""

    def __init__(self, port: int, ca: bytes) -> None:
        self.port = port
        self.ca = base64.b64encode(ca).decode()
        self.ending = threading.Event()
        self.asked: dict[str, list[tuple[str, Any]]] = {}
        self.answers: dict[str, Hook] = {}

    def url(self, *parts: str) -> str:
        return f"https://127.0.0.1:{self.port}/{'/'.join(parts)}"


@contextmanager
def listening(certificate: Path, key: Path, ca: Path) -> Iterator[Listener]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None: ...

        def setup(self) -> None:
            # Not while the next client waits to be accepted.
            try:
                self.request = tls.wrap_socket(self.request, server_side=True)
            except OSError:
                self.request.close()
            super().setup()

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()
            self.request.close()

        def handle(self) -> None:
            # The client may have gone.
            with suppress(OSError, ValueError):
                super().handle()

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path, _, query = self.path.partition("?")
            _, who, sequence, index = path.split("/")
            heads = {name: self.headers[name] for name in ("Content-Type", "Accept") if name in self.headers}
            listener.asked.setdefault(f"{who}/{sequence}", []).append(
                (index, {"query": query.startswith("timeout="), "headers": heads, "review": review})
            )
            hook = listener.answers.get(f"{sequence}/{index}")
            self._answer(hook, review["request"])

        def do_GET(self) -> None:
            self.send_error(404)

        def _answer(self, hook: Hook | None, request: Any) -> None:
            response = ALLOWED if hook is None else hook.response
            uid = request["uid"]
            if isinstance(response, Raw):
                if response.hangs:
                    listener.ending.wait(60)
                if response.hangs or response.closes:
                    self.close_connection = True
                    return
                if response.wire:
                    self.wfile.write(response.wire.encode("latin-1"))
                    self.close_connection = True
                    return
                if response.dripping:
                    self._drip(response.body.replace("{uid}", uid).encode())
                    return
                self._send(
                    response.body.replace("{uid}", uid).encode() * response.repeated,
                    response.code,
                    {**JSON, **response.headers},
                )
                return
            said = {"uid": uid, **response}
            if hook is not None and hook.patch is not None:
                patch = hook.patch if isinstance(hook.patch, str) else json.dumps(hook.patch)
                said = {"patchType": "JSONPatch", **said, "patch": base64.b64encode(patch.encode()).decode()}
            answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said}
            self._send(json.dumps(answer).encode(), 200, JSON)

        def _drip(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for byte in body:
                self.wfile.write(bytes((byte,)))
                if listener.ending.wait(0.1):
                    return

        def _send(self, body: bytes, code: int, headers: Mapping[str, str]) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None: ...

    server = Quiet(("127.0.0.1", 0), Handler)
    listener = Listener(server.server_address[1], ca.read_bytes())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        listener.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()


def configuration(
    hooked: Hooked, sort: str, namespace: str, who: str, listener: Listener
) -> dict[str, Any] | None:
    """The webhooks of one sort, and one that is asked about a probe, which tells that they are in force."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    common = {
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": here,
        "timeoutSeconds": 2,
    }
    webhooks = []
    for index, hook in enumerate(hooked.hooks):
        if hook.sort == sort:
            listener.answers[f"{namespace}/{index}"] = hook
            rule = {
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": list(hook.operations),
                "resources": list(hook.resources),
                **hook.rule,
            }
            client = {"url": listener.url(who, namespace, str(index)), "caBundle": listener.ca}
            webhooks.append(
                {
                    "name": hook.name or f"h{index}.example.test",
                    "rules": [rule],
                    "clientConfig": client,
                    **common,
                    **_filled(hook.fields, listener),
                }
            )
    if not webhooks:
        return None
    probe = {
        "name": "probe.example.test",
        "clientConfig": {"url": listener.url(who, f"{namespace}-{sort}", "probe"), "caBundle": listener.ca},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        ],
        **common,
        "objectSelector": {"matchLabels": PROBE},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KINDS[sort][0],
        "metadata": {"name": f"{namespace}-{sort}"},
        "webhooks": [probe, *webhooks],
    }


def _filled(fields: Mapping[str, Any], listener: Listener) -> Any:
    return json.loads(json.dumps(dict(fields)).replace("{port}", str(listener.port)))


class Outcome(msgspec.Struct):
    answers: list[Any]
    reviews: list[Any]


def outcome(hooked: Hooked, namespace: str, server: Server, listener: Listener) -> Outcome:
    """What the server answered and what it asked the webhooks, masked. Its configurations are gone again."""
    said: list[Answer] = []
    made: list[str] = []
    with server.asking() as asking:
        make_namespace(asking, namespace)
        for ask in hooked.before:
            said.append(answer_of(asking, ask, namespace, said))
        try:
            for sort, (_, target) in KINDS.items():
                body = configuration(hooked, sort, namespace, server.name, listener)
                if body is None:
                    continue
                answer = asking.ask("POST", target, body)
                assert answer.code == 201, answer.body
                made.append(f"{target}/{namespace}-{sort}")
                until_in_force(asking, namespace, f"{server.name}/{namespace}-{sort}", listener)
            listener.asked.pop(f"{server.name}/{namespace}", None)
            for ask in hooked.asks:
                said.append(answer_of(asking, ask, namespace, said))
        finally:
            for target in made:
                asking.ask("DELETE", target)
    masks = Masks()
    answers = [plain(answer, number, masks) for number, answer in enumerate(said[len(hooked.before) :])]
    # The server's own objects, which both make when they want to, are in no namespace.
    here = [
        (index, one)
        for index, one in listener.asked.get(f"{server.name}/{namespace}", ())
        if one["review"]["request"].get("namespace") == namespace
    ]
    asked = [[index, Masks().masked(review)] for index, review in sorted(here, key=lambda one: one[0])]
    return Outcome(_as_you_were(answers, server), _once(asked))


def _as_you_were(answers: list[Any], server: Server) -> Any:
    """The answers without the name of the server that is in the paths of its webhooks."""
    return json.loads(json.dumps(answers).replace(f"/{server.name}/", "/SERVER/"))


def _once(asked: list[Any]) -> list[Any]:
    """Kubernetes asks about the deletion of a pod again for each step that it takes."""
    kept: list[Any] = []
    for index, review in asked:
        same = bool(kept) and kept[-1][0] == index and _unnumbered(kept[-1][1]) == _unnumbered(review)
        if not (same and review["review"]["request"]["operation"] == "DELETE"):
            kept.append([index, review])
    return kept


def _unnumbered(review: Any) -> Any:
    return {**review["review"]["request"], "uid": "", "oldObject": ""}


def until_in_force(asking: Any, namespace: str, key: str, listener: Listener) -> None:
    body = {"metadata": {"generateName": "probe-", "labels": PROBE}}
    for _ in range(LOOKS):
        asking.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All", body)
        if listener.asked.get(key):
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"the webhooks of {key} are not asked")


def _asked(request: Any) -> str:
    return f"{request['operation']} {request['resource']['resource']} {request.get('subResource', '')}"


def unlike_outcomes(theirs: Outcome, ours: Outcome) -> list[Found]:
    """Steps of answers are numbered from 0, reviews from 1000."""
    found = [
        Found(step, path, their, our)
        for step, (one, other) in enumerate(zip(theirs.answers, ours.answers, strict=True))
        for path, their, our in unlike(one, other, "")
    ]
    if [one[0] for one in theirs.reviews] != [one[0] for one in ours.reviews]:
        asked = [
            [f"{index} {_asked(one['review']['request'])}" for index, one in side.reviews]
            for side in (theirs, ours)
        ]
        return [*found, Found(1000, "reviews", asked[0], asked[1])]
    return found + [
        Found(1000 + step, path, their, our)
        for step, (one, other) in enumerate(zip(theirs.reviews, ours.reviews, strict=True))
        for path, their, our in unlike(one[1], other[1], "")
    ]
