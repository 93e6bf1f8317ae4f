"""Validation of probes, lifecycle hooks and stop signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podling.apiserver.rules.container.mounts import MAX_PORT
from podling.apiserver.rules.field import all_invalid, at_least, between, choice, forbidden, invalid, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.container import HTTPGetAction, Lifecycle, LifecycleHandler, Probe

# fmt: off
_NAMED = (
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE",
    "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU",
    "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
)
# fmt: on
_REAL_TIME = [f"RTMIN+{i}" for i in range(1, 16)] + [f"RTMAX-{i}" for i in range(1, 15)]

STOP_SIGNALS: Mapping[str, frozenset[str]] = {
    "linux": frozenset(f"SIG{name}" for name in (*_NAMED, *_REAL_TIME)),
    "windows": frozenset(("SIGKILL", "SIGTERM")),
}


SCHEMES = frozenset(("HTTP", "HTTPS"))

_HANDLERS = (
    ("exec", "exec"),
    ("http_get", "httpGet"),
    ("tcp_socket", "tcpSocket"),
    ("grpc", "grpc"),
    ("sleep", "sleep"),
)


def validate_liveness(probe: Probe | None, path: str) -> Iterator[Cause]:
    """Of a liveness or startup probe: success after a success means nothing, so the threshold must be 1."""
    if probe is not None:
        yield from _validate_probe(probe, path)
        if probe.success_threshold != 1:
            yield invalid(f"{path}.successThreshold", probe.success_threshold, "must be 1")


def validate_readiness(probe: Probe | None, path: str) -> Iterator[Cause]:
    if probe is not None:
        yield from _validate_probe(probe, path)
        grace = probe.termination_grace_period_seconds
        if grace is not None:
            why = "must not be set for readinessProbes"
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, why)


def _validate_probe(probe: Probe, path: str) -> Iterator[Cause]:
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


def validate_lifecycle(
    lifecycle: Lifecycle | None, path: str, *, grace: int | None, os: str
) -> Iterator[Cause]:
    """`os`: what the pod names as its operating system, empty when it names none."""
    if lifecycle is None:
        return
    if lifecycle.post_start is not None:
        yield from _validate_handler(lifecycle.post_start, f"{path}.postStart", grace)
    if lifecycle.pre_stop is not None:
        yield from _validate_handler(lifecycle.pre_stop, f"{path}.preStop", grace)
    if lifecycle.stop_signal is None:
        return
    if not os:
        yield forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`")
    elif os in STOP_SIGNALS:
        yield from choice(f"{path}.stopSignal", lifecycle.stop_signal, STOP_SIGNALS[os])


def _validate_handler(handler: Probe | LifecycleHandler, path: str, grace: int | None) -> Iterator[Cause]:
    given = [
        (wire, action) for name, wire in _HANDLERS if (action := getattr(handler, name, None)) is not None
    ]
    if not given:
        yield required(path, "must specify a handler type")
        return
    wire, action = given[0]
    yield from _validate_action(wire, action, f"{path}.{wire}", grace)
    for wire, _ in given[1:]:
        yield forbidden(f"{path}.{wire}", "may not specify more than 1 handler type")


def _validate_action(wire: str, action: Any, path: str, grace: int | None) -> Iterator[Cause]:
    match wire:
        case "exec":
            if not action.command:
                yield required(f"{path}.command")
        case "httpGet":
            yield from _validate_http_get(action, path)
        case "sleep":
            # Without a grace period the pod is refused for that.
            if grace is not None and not 0 <= action.seconds <= grace:
                why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield invalid(path, action.seconds, why)
        case _:
            yield from validate_port(action.port, f"{path}.port")


def _validate_http_get(action: HTTPGetAction, path: str) -> Iterator[Cause]:
    if not action.path:
        yield required(f"{path}.path")
    yield from validate_port(action.port, f"{path}.port")
    yield from choice(f"{path}.scheme", action.scheme, SCHEMES)
    for header in action.http_headers:
        yield from all_invalid(f"{path}.httpHeaders", header.name, names.http_header(header.name))


def validate_port(port: int | str, path: str) -> list[Cause]:
    """A number, or the name of a port of the container."""
    if isinstance(port, int):
        return between(path, port, 1, MAX_PORT)
    return all_invalid(path, port, names.port_name(port))
