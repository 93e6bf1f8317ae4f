"""Which log a client means, and which lines of it: decided from the pod's status and the query. Pure.

The messages are the kubelet's; kubectl shows them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from podling.kubelet.serving.log_format import LogOptions
from podling.model.pod import Pod
from podling.model.pod_status import ContainerStateTerminated, ContainerStatus
from podling.model.time import parse_time

_PULL_FAILURES = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class NoLog(Exception):
    """There is no log to show; the message says why."""


class LogRequest(msgspec.Struct, frozen=True):
    options: LogOptions
    follow: bool
    previous: bool
    tail_lines: int | None


def parse_request(query: Mapping[str, str], now: datetime) -> LogRequest:
    """From PodLogOptions as a query, already validated by the API server. Raises ValueError."""
    stream = query.get("stream", "All")
    limit, tail = query.get("limitBytes"), query.get("tailLines")
    options = LogOptions(
        timestamps=_flag(query, "timestamps"),
        since=_since(query, now),
        limit_bytes=int(limit) if limit else None,
        stream=b"" if stream == "All" else stream.lower().encode(),
    )
    return LogRequest(
        options,
        _flag(query, "follow"),
        _flag(query, "previous"),
        int(tail) if tail and tail != "all" else None,
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in ("0", "false")


def _since(query: Mapping[str, str], now: datetime) -> int:
    if seconds := query.get("sinceSeconds"):
        moment = now - timedelta(seconds=int(seconds))
    elif time := query.get("sinceTime"):
        moment = parse_time(time)
    else:
        return 0
    return int(moment.timestamp() * 10**6) * 1000


def has_container(pod: Pod, name: str) -> bool:
    spec = pod.spec
    lists = (spec.init_containers, spec.containers, spec.ephemeral_containers)
    return any(container.name == name for containers in lists for container in containers)


def log_of(pod: Pod, name: str, *, previous: bool) -> str:
    """The API's id of the container whose log is meant. Raises NoLog."""
    where = f'container "{name}" in pod "{pod.metadata.name}"'
    status = _status(pod, name)
    if status is None:
        raise NoLog(f"{where} is not available")
    last = status.last_state.terminated
    if previous:
        return _id_of(last, f"previous terminated {where} not found")
    state = status.state
    if state.running is not None:
        return status.container_id
    if state.terminated is not None:
        return state.terminated.container_id or _id_of(last, f"{where} is terminated")
    if last is not None:
        return _id_of(last, f"{where} is terminated")
    if state.waiting is None:
        raise NoLog(f"{where} is waiting to start - no logs yet")
    reason = state.waiting.reason
    raise NoLog(f"{where} is waiting to start: {_PULL_FAILURES.get(reason, reason)}")


def _status(pod: Pod, name: str) -> ContainerStatus | None:
    known = pod.status
    lists = (known.container_statuses, known.init_container_statuses, known.ephemeral_container_statuses)
    return next((status for statuses in lists for status in statuses if status.name == name), None)


def _id_of(terminated: ContainerStateTerminated | None, otherwise: str) -> str:
    if terminated is None or not terminated.container_id:
        raise NoLog(otherwise)
    return terminated.container_id
