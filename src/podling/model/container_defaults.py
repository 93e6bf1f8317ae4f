"""Defaults of a container, in whichever of a pod's lists it stands. Changed in place."""

from __future__ import annotations

from podling.model.container import EnvVar, EphemeralContainerCommon, HTTPGetAction, LifecycleHandler, Probe

TERMINATION_MESSAGE_PATH = "/dev/termination-log"
TERMINATION_MESSAGE_POLICY = "File"


def default_container(container: EphemeralContainerCommon) -> None:
    container.image_pull_policy = container.image_pull_policy or pull_policy(container.image)
    container.termination_message_path = container.termination_message_path or TERMINATION_MESSAGE_PATH
    container.termination_message_policy = container.termination_message_policy or TERMINATION_MESSAGE_POLICY
    for port in container.ports:
        port.protocol = port.protocol or "TCP"
    for variable in container.env:
        _default_variable(variable)
    for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
        if probe is not None:
            default_probe(probe)
    if container.lifecycle is not None:
        _default_handler(container.lifecycle.post_start)
        _default_handler(container.lifecycle.pre_stop)


def pull_policy(image: str) -> str:
    """An image named without tag or digest, or by `latest`, may have moved: pull it always."""
    if not image or "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def default_probe(probe: Probe) -> None:
    probe.timeout_seconds = probe.timeout_seconds or 1
    probe.period_seconds = probe.period_seconds or 10
    probe.success_threshold = probe.success_threshold or 1
    probe.failure_threshold = probe.failure_threshold or 3
    _default_http_get(probe.http_get)
    if probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _default_handler(handler: LifecycleHandler | None) -> None:
    if handler is not None:
        _default_http_get(handler.http_get)


def _default_http_get(action: HTTPGetAction | None) -> None:
    if action is not None:
        action.path = action.path or "/"
        action.scheme = action.scheme or "HTTP"


def _default_variable(variable: EnvVar) -> None:
    source = variable.value_from
    if source is None:
        return
    if source.field_ref is not None:
        source.field_ref.api_version = source.field_ref.api_version or "v1"
    if source.file_key_ref is not None and source.file_key_ref.optional is None:
        source.file_key_ref.optional = False
