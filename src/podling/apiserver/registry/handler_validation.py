"""Faults of probes and lifecycle hooks: what they run or ask, how often, and for how long."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import (
    all_invalid,
    at_least,
    between,
    forbidden,
    invalid,
    one_of,
    required,
)
from podling.model import names
from podling.model.container import (
    EphemeralContainerCommon,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
)
from podling.model.errors import Cause

SCHEMES = ("HTTP", "HTTPS")
MAX_PORT = 65535

_HANDLERS = (
    ("exec", "exec"),
    ("http_get", "httpGet"),
    ("tcp_socket", "tcpSocket"),
    ("grpc", "grpc"),
    ("sleep", "sleep"),
)


def validate_probes(container: EphemeralContainerCommon, path: str) -> Iterator[Cause]:
    yield from _validate_probe(container.liveness_probe, f"{path}.livenessProbe", once=True)
    yield from _validate_probe(container.readiness_probe, f"{path}.readinessProbe", once=False)
    yield from _validate_probe(container.startup_probe, f"{path}.startupProbe", once=True)
    readiness = container.readiness_probe
    if readiness is not None and readiness.termination_grace_period_seconds is not None:
        where = f"{path}.readinessProbe.terminationGracePeriodSeconds"
        yield forbidden(where, "must not be set for readinessProbes")


def _validate_probe(probe: Probe | None, path: str, *, once: bool) -> Iterator[Cause]:
    """`once`: success after a success means nothing, so the threshold must be 1."""
    if probe is None:
        return
    yield from _validate_handler(probe, path, None)
    yield from at_least(f"{path}.initialDelaySeconds", probe.initial_delay_seconds, 0)
    yield from at_least(f"{path}.timeoutSeconds", probe.timeout_seconds, 0)
    yield from at_least(f"{path}.periodSeconds", probe.period_seconds, 0)
    yield from at_least(f"{path}.successThreshold", probe.success_threshold, 0)
    yield from at_least(f"{path}.failureThreshold", probe.failure_threshold, 0)
    if probe.termination_grace_period_seconds is not None:
        yield from at_least(
            f"{path}.terminationGracePeriodSeconds", probe.termination_grace_period_seconds, 1
        )
    if once and probe.success_threshold != 1:
        yield invalid(f"{path}.successThreshold", probe.success_threshold, "must be 1")


def validate_lifecycle(lifecycle: Lifecycle | None, path: str, grace: int | None) -> Iterator[Cause]:
    if lifecycle is None:
        return
    if lifecycle.post_start is not None:
        yield from _validate_handler(lifecycle.post_start, f"{path}.postStart", grace)
    if lifecycle.pre_stop is not None:
        yield from _validate_handler(lifecycle.pre_stop, f"{path}.preStop", grace)


def _validate_handler(handler: Probe | LifecycleHandler, path: str, grace: int | None) -> Iterator[Cause]:
    given = [wire for attribute, wire in _HANDLERS if getattr(handler, attribute, None) is not None]
    if not given:
        yield required(path, "must specify a handler type")
    for wire in given[1:]:
        yield forbidden(f"{path}.{wire}", "may not specify more than 1 handler type")
    if handler.exec is not None and not handler.exec.command:
        yield required(f"{path}.exec.command")
    if handler.http_get is not None:
        yield from _validate_http_get(handler.http_get, f"{path}.httpGet")
    if handler.tcp_socket is not None:
        yield from validate_port(handler.tcp_socket.port, f"{path}.tcpSocket.port")
    if isinstance(handler, Probe):
        if handler.grpc is not None:
            yield from validate_port(handler.grpc.port, f"{path}.grpc.port")
    elif handler.sleep is not None and not 0 <= handler.sleep.seconds <= (grace or 0):
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace or 0})"
        yield invalid(f"{path}.sleep", handler.sleep.seconds, why)


def _validate_http_get(action: HTTPGetAction, path: str) -> Iterator[Cause]:
    if not action.path:
        yield required(f"{path}.path")
    yield from validate_port(action.port, f"{path}.port")
    yield from one_of(f"{path}.scheme", action.scheme, SCHEMES)
    for i, header in enumerate(action.http_headers):
        yield from all_invalid(f"{path}.httpHeaders[{i}].name", header.name, names.http_header(header.name))


def validate_port(port: int | str, path: str) -> list[Cause]:
    """A number, or the name of a port of the container."""
    if isinstance(port, int):
        return between(path, port, 1, MAX_PORT)
    return all_invalid(path, port, names.port_name(port))
