"""`/containerLogs`: parses the request, finds the container's log, and sends its lines.

Error messages are those of Kubernetes' kubelet, as kubectl shows them unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from aiohttp import web

from podling.cri.interface import RuntimeFault
from podling.kubelet.logs.format import LogOptions
from podling.kubelet.logs.reading import (
    container_log,
    follow_log,
    send_log,
)
from podling.kubelet.pod.host import HTTPRefusal, PodHost, Signal, pod_of
from podling.model.time import Clock, parse_time
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStateTerminated

_PULL_FAILURES = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class NoLog(Exception):
    """There is no log to show; the message says why."""


class LogRequest(msgspec.Struct, frozen=True):
    """PodLogOptions: `tail_lines` None is the whole log, `previous` the instance before this one."""

    options: LogOptions
    follow: bool
    previous: bool
    tail_lines: int | None


def parse_request(query: Mapping[str, str], now: datetime) -> LogRequest:
    """From PodLogOptions as a query, already validated by the API server. Raises ValueError."""
    since = None
    if seconds := query.get("sinceSeconds"):
        since = now - timedelta(seconds=int(seconds))
    elif time := query.get("sinceTime"):
        since = parse_time(time)
    stream = query.get("stream", "All")
    limit, tail = query.get("limitBytes"), query.get("tailLines")
    options = LogOptions(
        timestamps=_flag(query, "timestamps"),
        since=int(since.timestamp() * 10**6) * 1000 if since else 0,
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


def has_container(pod: Pod, name: str) -> bool:
    spec = pod.spec
    lists = (spec.init_containers, spec.containers, spec.ephemeral_containers)
    return any(container.name == name for containers in lists for container in containers)


def log_of(pod: Pod, name: str, *, previous: bool) -> str:
    """The API's id of the container whose log is meant. Raises NoLog."""
    where = f'container "{name}" in pod "{pod.metadata.name}"'
    known = pod.status
    lists = (known.container_statuses, known.init_container_statuses, known.ephemeral_container_statuses)
    status = next((status for statuses in lists for status in statuses if status.name == name), None)
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


def _id_of(terminated: ContainerStateTerminated | None, otherwise: str) -> str:
    if terminated is None or not terminated.container_id:
        raise NoLog(otherwise)
    return terminated.container_id


class LogHandler:
    """Answers requests for logs. `stops` completes when the kubelet is to stop."""

    def __init__(self, host: PodHost, clock: Clock, stops: Signal) -> None:
        self._host = host
        self._clock = clock
        self._stops = stops

    async def container_logs(self, request: web.Request) -> web.StreamResponse:
        """The log as plain text. Raises HTTPRefusal: 404 without pod or container, 400 without a log."""
        pod, name = pod_of(self._host, request), request.match_info["container"]
        if pod is None:
            raise HTTPRefusal(404, f'pod "{request.match_info["pod"]}" does not exist\n')
        if not has_container(pod, name):
            raise HTTPRefusal(404, f'container "{name}" not found in pod "{pod.metadata.name}"\n')
        try:
            wanted = parse_request(request.query, self._clock.now())
            api_id = log_of(pod, name, previous=wanted.previous)
        except (NoLog, ValueError) as error:
            raise HTTPRefusal(400, str(error)) from error
        container_id = api_id.partition("://")[2]
        try:
            log = await container_log(self._host, container_id)
        except (RuntimeFault, OSError) as error:
            raise HTTPRefusal(400, f"unable to retrieve container logs for {api_id}") from error

        async def cut() -> None:
            """Close the connection without ending the answer, so that the client sees that it is
            incomplete."""
            await self._stops()
            if request.transport is not None:
                request.transport.close()

        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            async with asyncio.TaskGroup() as group:
                cutting = group.create_task(cut())
                shown, tail = (log.path, wanted.options, response.write), wanted.tail_lines
                if wanted.follow:
                    await follow_log(*shown, ended=log.ended, tail_lines=tail)
                else:
                    # An exit is known, and told, before the runtime has written the last of the log.
                    is_late = log.exit_code() is not None and not await log.is_complete()
                    await send_log(*shown, tail_lines=tail, ended=log.ended if is_late else None)
                cutting.cancel()
        except* ConnectionError:
            # The client has seen enough.
            pass
        return response
