"""R-SYS-8: ImagePolicyWebhook asks about the images of pods, keeps what it is told, and fails well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podling.apiserver.admission.image_policy import ImagePolicyWebhook
from podling.apiserver.admission.plugin import Attributes
from podling.apiserver.admission.plugin_options import ImagePolicy
from podling.apiserver.authz.webhook import WebhookFailure
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.pod import Pod
from unit.apiserver.admission.sent import Itself


class Server:
    """Answers with a status, or fails."""

    def __init__(self, answer: dict[str, Any] | WebhookFailure | bytes) -> None:
        self.answer, self.time = answer, 0.0
        self.asked: list[Any] = []

    async def send(self, body: bytes) -> bytes:
        self.asked.append(json.loads(body))
        if isinstance(self.answer, WebhookFailure):
            raise self.answer
        return self.answer if isinstance(self.answer, bytes) else json.dumps({"status": self.answer}).encode()

    def plugin(self, *, fails_open: bool = False) -> ImagePolicyWebhook:
        policy = ImagePolicy(self.send, 10.0, 5.0, 0.0, fails_open)
        return ImagePolicyWebhook(policy, lambda: self.time)


def pod(*images: str, **annotations: str) -> Pod:
    containers = [{"name": f"c{index}", "image": image} for index, image in enumerate(images)]
    told = {f"{key}.image-policy.k8s.io/x": value for key, value in annotations.items()}
    spec = {"containers": containers, "initContainers": [{"name": "i", "image": "first"}]}
    spec["ephemeralContainers"] = [{"name": "e", "image": "debug"}]
    return from_data({"metadata": {"annotations": {**told, "other": "y"}}, "spec": spec}, Pod)


async def told(plugin: ImagePolicyWebhook, new: Pod, subresource: str = "") -> tuple[str, dict[str, str]]:
    """Why it is refused, empty if it is not; and what is recorded."""
    of, recorded = resource_of(Pod), dict[str, str]()
    target = f"pods/{subresource}" if subresource else "pods"
    user, sent = User("ann"), Itself(annotations=recorded)
    try:
        await plugin.admit(
            Attributes("CREATE", of, subresource, "ns", "p", user, target, sent=sent), new, None
        )
    except StatusError as refused:
        assert refused.code == 403
        return refused.message, recorded
    return "", recorded


async def test_what_is_asked() -> None:
    server = Server({"allowed": True})
    assert await told(server.plugin(), pod("a", "b", mine="z")) == ("", {})
    assert server.asked == [
        {
            "kind": "ImageReview",
            "apiVersion": "imagepolicy.k8s.io/v1alpha1",
            "metadata": {},
            "spec": {
                "containers": [{"image": "a"}, {"image": "b"}, {"image": "first"}],
                "annotations": {"mine.image-policy.k8s.io/x": "z"},
                "namespace": "ns",
            },
            "status": {"allowed": False},
        }
    ]
    await told(server.plugin(), pod("a"), "ephemeralcontainers")
    assert server.asked[1]["spec"]["containers"] == [{"image": "debug"}]


async def test_an_answer_is_kept_for_a_while() -> None:
    server = Server({"allowed": False, "reason": "ugly", "auditAnnotations": {"a": "b"}})
    plugin, key = server.plugin(), "imagepolicywebhook.image-policy.k8s.io/a"
    refused = 'pods "p" is forbidden: image policy webhook backend denied one or more images: ugly'
    for _ in range(2):
        assert await told(plugin, pod("a")) == (refused, {key: "b"})
    assert len(server.asked) == 1
    server.time, server.answer = 5.0, {"allowed": True}
    assert await told(plugin, pod("a")) == ("", {})
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (WebhookFailure("EOF"), 'pods "p" is forbidden: EOF'),
        (WebhookFailure("no", code=403), "no"),
        (b"[]", "couldn't get version/kind"),
        (b'{"kind":"Pod"}', 'no kind "Pod" is registered'),
        (b'{"status":{"allowed":"yes"}}', "cannot unmarshal string"),
    ],
)
async def test_who_cannot_be_asked_refuses_or_lets_through(answer: Any, why: str) -> None:
    server = Server(answer)
    said, recorded = await told(server.plugin(), pod("a"))
    assert why in said and not recorded
    opened = {"imagepolicywebhook.image-policy.k8s.io/failed-open": "true"}
    assert await told(server.plugin(fails_open=True), pod("a")) == ("", opened)


async def test_what_fails_in_passing_is_tried_again() -> None:
    server = Server(WebhookFailure("busy", again=True))
    assert "busy" in (await told(server.plugin(), pod("a")))[0]
    assert len(server.asked) == 5
