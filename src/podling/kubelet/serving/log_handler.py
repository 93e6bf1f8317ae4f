"""`/containerLogs`: which file it is, and its lines to the client."""

from __future__ import annotations

import asyncio

from aiohttp import web

from podling.cri.interface import RuntimeFault
from podling.kubelet.serving.container_log import ContainerLog, container_log
from podling.kubelet.serving.log_directories import LogDirectories
from podling.kubelet.serving.log_request import LogRequest, NoLog, has_container, log_of, parse_request
from podling.kubelet.serving.logs import follow_log, send_log, written_out
from podling.kubelet.serving.pod_host import Moment, PodHost
from podling.kubelet.serving.refusal import Refusal, pod_of
from podling.model.time import Clock


class LogHandler:
    """`stops`: the moment at which the kubelet itself is to end."""

    def __init__(self, host: PodHost, clock: Clock, directories: LogDirectories, stops: Moment) -> None:
        self._host = host
        self._clock = clock
        self._directories = directories
        self._stops = stops

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
        try:
            log = await container_log(self._host, container_id)
        except (RuntimeFault, OSError) as error:
            raise Refusal(400, f"unable to retrieve container logs for {api_id}") from error
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            async with asyncio.TaskGroup() as group:
                cutting = group.create_task(_cut(request, self._stops))
                await self._send(log, wanted, response)
                cutting.cancel()
        except* ConnectionError:
            # The client has seen enough.
            pass
        return response

    async def _send(self, log: ContainerLog, wanted: LogRequest, response: web.StreamResponse) -> None:
        if not wanted.follow:
            if log.exit_code() is not None and not await log.is_complete():
                # An exit is known, and told, before the runtime has written the last of the log.
                await written_out(log.path, log.ended, self._directories)
            await send_log(log.path, wanted.options, response.write, tail_lines=wanted.tail_lines)
            return
        await follow_log(
            log.path,
            wanted.options,
            response.write,
            directories=self._directories,
            ended=log.ended,
            tail_lines=wanted.tail_lines,
        )


async def _cut(request: web.Request, stops: Moment) -> None:
    """Ends the connection in the middle of the answer, as there would be more to say."""
    await stops()
    if request.transport is not None:
        request.transport.close()
