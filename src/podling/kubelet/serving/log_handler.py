"""`/containerLogs`: which file it is, and its lines to the client."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.serving.log_directories import LogDirectories
from podling.kubelet.serving.log_request import LogRequest, NoLog, has_container, log_of, parse_request
from podling.kubelet.serving.logs import follow_log, send_log
from podling.kubelet.serving.pod_host import PodHost
from podling.kubelet.serving.refusal import Refusal, pod_of
from podling.model.time import Clock


class LogHandler:
    def __init__(self, host: PodHost, clock: Clock, directories: LogDirectories) -> None:
        self._host = host
        self._clock = clock
        self._directories = directories

    async def container_logs(self, request: web.Request) -> web.StreamResponse:
        pod, name = pod_of(self._host, request), request.match_info["container"]
        if pod is None:
            raise Refusal(404, f'pod "{request.match_info["pod"]}" does not exist\n')
        if not has_container(pod, name):
            raise Refusal(404, f'container "{name}" not found in pod "{pod.metadata.name}"\n')
        try:
            wanted = parse_request(request.query, self._clock.now())
            api_id = log_of(pod, name, previous=wanted.previous)
        except (NoLog, ValueError) as error:
            raise Refusal(400, str(error)) from error
        container_id = api_id.partition("://")[2]
        log = await self._log_path(api_id, container_id)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            await self._send(log, wanted, container_id, response)
        except* ConnectionError:
            # The client has seen enough.
            pass
        return response

    async def _log_path(self, api_id: str, container_id: str) -> Path:
        try:
            log = Path((await self._host.runtime.container_status(container_id)).log_path)
            log.stat()
        except (RuntimeFault, OSError) as error:
            raise Refusal(400, f"unable to retrieve container logs for {api_id}") from error
        return log

    async def _send(
        self, log: Path, wanted: LogRequest, container_id: str, response: web.StreamResponse
    ) -> None:
        if not wanted.follow:
            await send_log(log, wanted.options, response.write, tail_lines=wanted.tail_lines)
            return

        async def ended() -> bool:
            await self._host.container_ended(container_id)
            return await self._is_complete(container_id)

        await follow_log(
            log,
            wanted.options,
            response.write,
            directories=self._directories,
            ended=ended,
            tail_lines=wanted.tail_lines,
        )

    async def _is_complete(self, container_id: str) -> bool:
        """A runtime calls a container exited once it has written all of its log."""
        try:
            status = await self._host.runtime.container_status(container_id)
        except RuntimeFault:
            return True
        return status.state != pb.CONTAINER_RUNNING
