"""What `podling debug --explain` tells: the request that would be sent, who would judge it, and how."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from podling.client.transport import JSON
from podling.debug import judges, profiles
from podling.debug.container import pod_path
from podling.model.errors import StatusError
from podling.model.types.admissionregistration import (
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from podling.remote.debugging import is_without_namespace
from podling.remote.pods import STRATEGIC, Cluster, container_patch

WEBHOOKS = (MutatingWebhookConfiguration, ValidatingWebhookConfiguration)
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
ATTACHED = ("create", "attach")
UNKNOWN = "unknown: you may not look"

T = TypeVar("T", bound=KubeObject)


class _Sent(NamedTuple):
    """A request. `needed` are verbs, each with the subresource of pods that it is for."""

    line: str
    content_type: str
    body: Mapping[str, Any]
    needed: Sequence[tuple[str, str]]
    namespace: str
    operation: str
    subresource: str
    labels: Mapping[str, str]


async def explained_container(
    cluster: Cluster, pod: Pod, container: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Lines on a debug container, and whether the server would take it. Nothing is changed. Raises
    OSError."""
    meta, below = pod.metadata, "ephemeralcontainers"
    line = f"PATCH {pod_path(meta.namespace, meta.name, below)}"
    needed = (("patch", below), ATTACHED)
    sent = _Sent(
        line,
        STRATEGIC,
        container_patch(container),
        needed,
        meta.namespace,
        "UPDATE",
        below,
        meta.labels,
    )
    tried = partial(cluster.add_container, meta.namespace, meta.name, container, dry_run=True)
    return await _explained(cluster, sent, tried)


async def explained_pod(
    cluster: Cluster, body: Mapping[str, Any], *, deletes: bool
) -> tuple[list[str], bool]:
    """As `explained_container`, on a pod to debug in; `deletes`: a pod is deleted for it, too."""
    meta = body["metadata"]
    needed = (("create", ""), ATTACHED, *([("delete", "")] if deletes else []))
    line = f"POST {pod_path(meta['namespace'])}"
    labels = meta.get("labels", {})
    sent = _Sent(line, JSON, body, needed, meta["namespace"], "CREATE", "", labels)
    return await _explained(cluster, sent, partial(cluster.create, body, dry_run=True))


async def _explained(
    cluster: Cluster, sent: _Sent, tried: Callable[[], Awaitable[Pod]]
) -> tuple[list[str], bool]:
    labels = await cluster.labels_of_namespace(sent.namespace)
    asked = judges.Asked(sent.operation, sent.subresource, sent.labels, labels)
    body = msgspec.json.format(msgspec.json.encode(sent.body), indent=2).decode()
    lines = [sent.line, f"Content-Type: {sent.content_type}", "", body, "", "Judged by:"]
    for verb, subresource in sent.needed:
        may = await cluster.may(verb, "pods", subresource, sent.namespace)
        what = f"pods/{subresource}" if subresource else "pods"
        lines.append(f"  authorization   {verb} {what}: {'allowed' if may else 'not allowed'}")
    lines.append(f"  Pod Security    {labels.get(profiles.ENFORCE) or 'enforces nothing here'}")
    try:
        hooks = [name for kind in WEBHOOKS for name in judges.webhooks(await _all(cluster, kind), asked)]
        lines.append(f"  webhooks        {_listed(hooks)}")
    except StatusError:
        lines.append(f"  webhooks        {UNKNOWN}")
    try:
        found = await _all(cluster, ValidatingAdmissionPolicy)
        bindings = await _all(cluster, ValidatingAdmissionPolicyBinding)
        lines.append(f"  policies        {_listed(judges.policies(found, bindings, asked))}")
    except StatusError:
        lines.append(f"  policies        {UNKNOWN}")
    try:
        await tried()
    except StatusError as error:
        if is_without_namespace(error):
            return [*lines, "", f"There is no namespace {sent.namespace}: it would be made before."], True
        return [*lines, "", f"The server would refuse it: {error.message}"], False
    return [*lines, "", "The server would take it."], True


async def _all(cluster: Cluster, type_: type[T]) -> list[T]:
    kind = type_.__name__.lower()
    plural = f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"
    return await cluster.objects(f"{REGISTRATION}/{plural}", type_)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none is asked"
