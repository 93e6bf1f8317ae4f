"""R-SYS-8: ImagePolicyWebhook asks as Kubernetes' does, and takes what it is answered in the same way: also
what makes no sense, with both values of `defaultAllow`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from peer import control_plane
from peer.admission_configurations import images
from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from peer.test_authorization_webhook import Raw, Webhook, kubeconfig, listening

LOOKS = 2000
PODS = "/api/v1/namespaces/{ns}/pods"
REVIEW: dict[str, Any] = {"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1"}
MERGE, STRATEGIC = {"Content_Type": MERGE_PATCH}, {"Content_Type": STRATEGIC_PATCH}


def raw(code: int = 200, **said: Any) -> Raw:
    return Raw(json.dumps(said).encode(), code)


ANSWERS: Mapping[str, Any] = {
    "good": {"allowed": True},
    "told": {"allowed": True, "reason": "why not", "auditAnnotations": {"a": "b", "c": "d"}},
    "bad": {"allowed": False},
    "bad-why": {"allowed": False, "reason": "ugly", "auditAnnotations": {"a": "b"}},
    "empty": Raw(),
    "braces": Raw(b"{}"),
    "list": Raw(b"[]"),
    "text": Raw(b"yes", 200, "text/plain"),
    "no-kind": raw(status={"allowed": True}),
    "other-kind": raw(kind="Pod", apiVersion="v1", status={"allowed": True}),
    "other-version": raw(kind="ImageReview", apiVersion="imagepolicy.k8s.io/v1", status={"allowed": True}),
    "wrong-type": raw(**REVIEW, status={"allowed": "yes"}),
    "201": raw(201, **REVIEW, status={"allowed": True}),
    "400": Raw(b"no", 400, "text/plain"),
    "403": Raw(b"no", 403, "text/plain"),
    "404": Raw(b"no", 404, "text/plain"),
    "500": Raw(b"no", 500, "text/plain"),
    "503": Raw(b"no", 503, "text/plain"),
}


class Both(NamedTuple):
    servers: tuple[Server, Server]
    webhook: Webhook
    logs: tuple[Path, Path]


def first_image(review: Any) -> str:
    name: str = review["spec"]["containers"][0].get("image", "")
    return name.partition(":")[0]


@pytest.fixture(scope="module", params=["closed", "open"])
def both(
    request: pytest.FixtureRequest, kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp(request.param)
    logs = []
    with ExitStack() as running:
        webhook = running.enter_context(listening(directory, ANSWERS, first_image))
        servers = []
        for name in ("kubernetes", "podling"):
            (own := directory / name).mkdir()
            file = kubeconfig(own / "webhook.conf", f"{webhook.url}/{name}", directory / "webhook/ca.crt")
            asked = images(kubeConfigFile=str(file), retryBackoff=1, defaultAllow=request.param == "open")
            (own / "admission.yaml").write_text(yaml.safe_dump(asked))
            (own / "policy.yaml").write_text(
                yaml.safe_dump(
                    {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
                )
            )
            logs.append(own / "audit.log")
            flags = [
                "--enable-admission-plugins=ImagePolicyWebhook",
                f"--admission-control-config-file={own / 'admission.yaml'}",
                f"--audit-log-path={logs[-1]}",
                f"--audit-policy-file={own / 'policy.yaml'}",
            ]
            server = (
                control_plane.kubernetes(kubernetes_programs, own, *flags)
                if name == "kubernetes"
                else control_plane.podling(own, *flags)
            )
            servers.append(running.enter_context(server))
        yield Both((servers[0], servers[1]), webhook, (logs[0], logs[1]))


def pod(image: str, **metadata: Any) -> Any:
    return {
        "metadata": {"name": image.partition(":")[0], **metadata},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def asks() -> Compared:
    annotations = {"x.image-policy.k8s.io/a": "b", "image-policy.k8s.io/c": "d", "other": "e"}
    two = pod("good:2", name="two", annotations=annotations)
    two["spec"]["initContainers"] = [{"name": "i", "image": "init:1"}]
    ephemeral = {"spec": {"ephemeralContainers": [{"name": "e", "image": "bad-why:1"}]}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("bad:9")["spec"]}
    return Compared(
        "images",
        [
            *(Ask("POST", PODS, pod(f"{name}:1"), what=name) for name in ANSWERS),
            Ask("POST", PODS, two),
            Ask("POST", f"{PODS}?dryRun=All", pod("good:1", name="again")),
            Ask("POST", f"{PODS}?dryRun=All", pod("bad:1", name="again")),
            Ask("POST", PODS, {"metadata": {"name": "none"}, "spec": {"containers": []}}),
            Ask("PATCH", f"{PODS}/good", {"metadata": {"labels": {"a": "b"}}}, MERGE),
            Ask(
                "PATCH",
                f"{PODS}/good",
                {"spec": {"containers": [{"name": "c", "image": "bad:3"}]}},
                STRATEGIC,
            ),
            Ask("PATCH", f"{PODS}/good/ephemeralcontainers", ephemeral, STRATEGIC),
            Ask("PATCH", f"{PODS}/good/status", {"status": {"reason": "x"}}, MERGE),
            Ask("DELETE", f"{PODS}/two"),
            Ask(
                "POST",
                "/apis/apps/v1/namespaces/{ns}/deployments",
                {
                    "metadata": {"name": "d"},
                    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
                },
            ),
        ],
        apart=True,
    )


def until_deployed(log: Path, server: Server) -> list[Any]:
    """The ends of all requests, once that of the last, which makes a deployment, is in the log."""
    for _ in range(LOOKS):
        lines = map(json.loads, log.read_text().splitlines())
        events = [event for event in lines if event["stage"] == "ResponseComplete"]
        if any("/namespaces/images/deployments" in event["requestURI"] for event in events):
            return events
        # Whoever answers has had time to write.
        server.ask("GET", "/readyz")
    raise AssertionError(f"{log} has no event of a deployment")


def test_images_are_judged_alike(both: Both) -> None:
    compared = asks()
    found = unnamed(differences(compared, "images", *both.servers))
    assert not found, shown(compared, found)
    theirs, ours = (both.webhook.asked[name] for name in ("kubernetes", "podling"))
    assert ours == theirs
    told = [
        [
            (event["verb"], event["requestURI"], event.get("annotations"))
            for event in until_deployed(log, server)
            # What was asked in between, of a version, each server has its own of.
            if "/namespaces/images/pods" in event["requestURI"] and event["verb"] != "get"
        ]
        for log, server in zip(both.logs, both.servers, strict=True)
    ]
    assert told[1] == told[0]
