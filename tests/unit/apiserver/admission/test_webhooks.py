"""Webhooks are asked, answer, fail and are waited for (R-SYS-4); what both kinds are told, and every wrong
answer there is, `tests/peer/test_webhooks.py` compares with Kubernetes."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from podling.apiserver.admission import webhook_client
from podling.apiserver.admission.webhooks import annotate
from podling.machine.pki import Authority

if TYPE_CHECKING:
    from unit.apiserver.conftest import Answer, Conversation

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["*/*"],
    "scope": "Namespaced",
}
SERVICE = {"namespace": "default", "name": "hook", "path": "/ask"}

Say = Callable[[Any], Awaitable[Any]]
"""From the request of a review to the response, without its uid."""


class Webhook:
    """Listens on loopback by TLS."""

    def __init__(self, ca: bytes) -> None:
        self.ca = ca
        self.port = 0
        self.requests: list[Any] = []
        self.peers: set[Any] = set()
        self.say: Say = allow

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = (await request.json())["request"]
        self.requests.append(asked)
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        response = await self.say(asked)
        if isinstance(response, web.StreamResponse):
            return response
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**review, "response": {"uid": asked["uid"], **response}})

    def configuration(self, kind: str, **fields: Any) -> dict[str, Any]:
        client = {"url": f"https://127.0.0.1:{self.port}/ask", "caBundle": base64.b64encode(self.ca).decode()}
        webhook = {
            "name": "h.example.test",
            "clientConfig": client,
            "rules": [RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        return {"kind": kind, "apiVersion": GROUP[6:], "metadata": {"name": "hooks"}, "webhooks": [webhook]}

    async def join(
        self, api: Conversation, kind: str = "ValidatingWebhookConfiguration", **fields: Any
    ) -> None:
        made = await api.post(f"{GROUP}/{kind.lower()}s", self.configuration(kind, **fields))
        assert made.status == 201, made.body


async def allow(request: Any) -> Any:
    return {"allowed": True}


@asynccontextmanager
async def listening(directory: Path, hosts: list[str]) -> AsyncIterator[Webhook]:
    authority = Authority(directory, datetime.now(UTC))
    pair = authority.server("hook", "hook", hosts)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    hook = Webhook(authority.ca.certificate.read_bytes())
    served = web.Application(client_max_size=1 << 24)
    served.router.add_route("*", "/{path:.*}", hook.answer)
    runner = web.AppRunner(served)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    hook.port = runner.addresses[0][1]
    try:
        yield hook
    finally:
        await runner.cleanup()


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with listening(tmp_path, ["127.0.0.1", "hook.default.svc"]) as found:
        yield found


async def create(api: Conversation, name: str = "m") -> Answer:
    return await api.post(MAPS, {"metadata": {"name": name}, "data": {"a": "b"}})


async def test_a_webhook_is_asked_from_when_it_is_there_until_it_is_gone(
    api: Conversation, hook: Webhook
) -> None:
    await create(api, "before")
    await hook.join(api)
    await create(api, "meanwhile")
    await api.delete(f"{GROUP}/validatingwebhookconfigurations/hooks")
    await create(api, "after")
    assert [one["name"] for one in hook.requests] == ["meanwhile"]


async def test_it_refuses_in_its_words(
    api: Conversation, hook: Webhook, pod_body: Callable[..., Any]
) -> None:
    async def deny(request: Any) -> Any:
        return {
            "allowed": False,
            "status": {"message": "not in this house", "code": 403, "reason": "Forbidden"},
        }

    await api.post("/api/v1/namespaces/default/pods", pod_body())
    await hook.join(api)
    hook.say = deny
    debug = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}
    path = "/api/v1/namespaces/default/pods/p"
    answer = await api.patch(f"{path}/ephemeralcontainers", debug, "strategic-merge-patch")
    assert (answer.status, answer.message) == (
        403, 'admission webhook "h.example.test" denied the request: not in this house',
    )  # fmt: skip
    (asked,) = hook.requests
    assert (asked["subResource"], asked["object"]["kind"]) == ("ephemeralcontainers", "Pod")
    assert asked["object"]["spec"]["containers"], "the whole pod"
    assert "ephemeralContainers" not in (await api.get(path)).body["spec"]


async def test_it_changes_what_is_stored_and_is_asked_again(api: Conversation, hook: Webhook) -> None:
    async def patch(request: Any) -> Any:
        number = str(len(hook.requests))
        operations = [{"op": "add", "path": f"/data/x{number}", "value": number}]
        encoded = base64.b64encode(json.dumps(operations).encode()).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": encoded, "warnings": [f"warned {number}"]}

    body = hook.configuration("MutatingWebhookConfiguration", reinvocationPolicy="IfNeeded")
    body["webhooks"].append({**body["webhooks"][0], "name": "i.example.test"})
    await api.post(f"{GROUP}/mutatingwebhookconfigurations", body)
    hook.say = patch
    answer = await create(api)
    # Each has changed what the other had seen, and is asked again, once.
    assert answer.body["data"] == {"a": "b", "x1": "1", "x2": "2", "x3": "3", "x4": "4"}
    assert answer.headers["Warning"] == ", ".join(f'299 - "warned {n}"' for n in (1, 2, 3, 4))


async def test_one_that_hangs_is_given_up_and_holds_up_nobody_else(api: Conversation, hook: Webhook) -> None:
    is_asked, may_go = asyncio.Event(), asyncio.Event()

    async def hang(request: Any) -> Any:
        is_asked.set()
        await may_go.wait()
        return {"allowed": True}

    await create(api)
    rules = [{**RULE, "operations": ["UPDATE"], "resources": ["configmaps"]}]
    await hook.join(api, rules=rules, timeoutSeconds=1, objectSelector={"matchLabels": {"slow": "yes"}})
    hook.say = hang
    slow = asyncio.ensure_future(api.patch(f"{MAPS}/m", {"metadata": {"labels": {"slow": "yes"}}}))  # noqa: TID251
    await is_asked.wait()
    quick = await api.patch(f"{MAPS}/m", {"data": {"a": "c"}})
    assert quick.status == 200, "written while the webhook is asked about another write of it"
    answer = await slow
    may_go.set()
    assert answer.status == 500
    url = f"https://127.0.0.1:{hook.port}/ask?timeout=1s"
    assert answer.message == (
        'Internal error occurred: failed calling webhook "h.example.test": failed to call webhook: '
        f'Post "{url}": context deadline exceeded'
    )


async def test_a_webhook_may_write_what_it_is_asked_about(api: Conversation, hook: Webhook) -> None:
    """The write that it is asked about is then decided again."""

    async def write(request: Any) -> Any:
        if request["object"]["data"]["a"] == "c" and len(hook.requests) == 1:
            await api.patch(f"{MAPS}/m", {"data": {"by": "webhook"}})
        return {"allowed": True}

    await create(api)
    await hook.join(api)
    hook.say = write
    answer = await api.patch(f"{MAPS}/m", {"data": {"a": "c"}})
    assert answer.status == 200
    assert answer.body["data"] == {"a": "c", "by": "webhook"}


async def test_an_answer_has_a_bound(
    api: Conversation, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def much(request: Any) -> Any:
        return web.Response(body=b"{" + b" " * 100_000)

    monkeypatch.setattr(webhook_client, "LONGEST_ANSWER", 10_000)
    await hook.join(api)
    hook.say = much
    assert (await create(api)).message.endswith("the answer is longer than 10000 bytes")


async def test_connections_are_used_again(api: Conversation, hook: Webhook) -> None:
    await hook.join(api)
    for number in range(5):
        await create(api, f"m{number}")
    assert len(hook.requests) == 5
    assert len(hook.peers) == 1


async def test_a_service_is_reached_at_a_ready_endpoint_by_its_name(
    api: Conversation, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No client may make an endpoint on loopback, so the one found here stands for it."""
    found: list[tuple[str, int]] = []

    def choose(endpoints: list[tuple[str, int]]) -> tuple[str, int]:
        found.extend(endpoints)
        return "127.0.0.1", hook.port

    monkeypatch.setattr(webhook_client, "choose", choose)
    ports = [{"name": "metrics", "port": 80}, {"name": "https", "port": 443, "targetPort": 8443}]
    await api.post(
        "/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": {"ports": ports}}
    )
    client = {"service": SERVICE, "caBundle": base64.b64encode(hook.ca).decode()}
    await hook.join(api, clientConfig=client, rules=[{**RULE, "resources": ["configmaps"]}])
    assert (await create(api)).message.endswith(
        'Post "https://hook.default.svc:443/ask?timeout=10s": no endpoints available for service "hook"'
    )
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    for service, ready, address in (
        ("hook", False, "192.0.2.1"),
        ("hook", True, "192.0.2.2"),
        ("other", True, "192.0.2.3"),
    ):
        made = await api.post(
            slices,
            {
                "metadata": {
                    "name": f"{service}-{address}",
                    "labels": {"kubernetes.io/service-name": service},
                },
                "addressType": "IPv4",
                "ports": [{"name": "metrics", "port": 80}, {"name": "https", "port": 8443}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
            },
        )
        assert made.status == 201, made.body
    assert (await create(api)).status == 201
    assert found == [("192.0.2.2", 8443)]
    assert [one["name"] for one in hook.requests] == ["m"]


async def test_what_decides_who_is_asked_nobody_is_asked_about(api: Conversation, hook: Webhook) -> None:
    async def deny(request: Any) -> Any:
        return {"allowed": False}

    hook.say = deny
    await hook.join(api, rules=[{**RULE, "scope": "*"}])
    gone = await api.delete(f"{GROUP}/validatingwebhookconfigurations/hooks")
    assert gone.status == 200
    assert not hook.requests


async def test_what_it_did_is_counted(api: Conversation, hook: Webhook) -> None:
    async def deny(request: Any) -> Any:
        return {"allowed": False, "status": {"code": 403}}

    await hook.join(api)
    hook.say = deny
    await create(api)
    page = (await api.get("/metrics")).body.decode()
    labels = 'name="h.example.test",operation="CREATE"'
    assert (
        f'apiserver_admission_webhook_rejection_count{{error_type="no_error",{labels},rejection_code="403",'
        'type="validating"} 1.0' in page
    )
    assert f'apiserver_admission_webhook_admission_duration_seconds_count{{{labels},rejected="true",' in page


def test_annotations_have_a_bound() -> None:
    known = {"a": "kept"}
    annotate(known, {"a": "other", "b": "new", "c": "x" * 100_000, "d": "behind it"})
    assert known == {"a": "kept", "b": "new"}
