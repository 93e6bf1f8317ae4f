"""The handlers of `/exec`, `/attach` and `/portForward`: find the container, ask the runtime, join the
streams.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from aiohttp import web

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.pod.host import HTTPRefusal, PodHost, Signal, of_runtime, pod_of
from podling.kubelet.server import streams
from podling.kubelet.server.relay import CommandStreams
from podling.kubelet.server.replay import Replays
from podling.model.types.pod import Pod
from podling.streaming.negotiation import Accepted
from podling.streaming.session import Session


class StreamHandlers:
    """`stops` completes when the kubelet is to stop."""

    def __init__(self, host: PodHost, stops: Signal) -> None:
        self._host = host
        self._stops = stops
        self._replays = Replays(host)

    async def exec(self, request: web.Request) -> web.StreamResponse:
        """Run a command in a container and join it to the client. Raises HTTPRefusal and Unacceptable."""
        accepted, wanted = streams.negotiate_command(request.headers), _command_streams(request)
        try:
            _, _, container_id = self._container(request)
            asked = self._host.runtime.exec(
                pb.ExecRequest(
                    container_id=container_id,
                    cmd=request.query.getall("command", []),
                    tty=wanted.tty,
                    stdin=wanted.stdin,
                    stdout=wanted.stdout,
                    stderr=wanted.stderr,
                )
            )
            runtime = await _reached(asked, streams.COMMAND_PROTOCOL)
        except HTTPRefusal as refusal:
            return await _refused(request, accepted, wanted, refusal)
        return await streams.serve_command(request, accepted, runtime, wanted, self._stops)

    async def attach(self, request: web.Request) -> web.StreamResponse:
        """Join the client to a container's main process. podling's own `replay=1` and `exitCode=1` show what
        it has printed before, and how it ended. Raises HTTPRefusal and Unacceptable."""
        accepted, wanted = streams.negotiate_command(request.headers), _command_streams(request)
        tells_exit = request.query.get("exitCode") == "1"
        replay = None
        try:
            pod, name, container_id = self._container(request, ended=tells_exit)
            if self._replays.claim(pod, name, container_id, asked=request.query.get("replay") == "1"):
                replay = await self._replays.of(pod, name, container_id, tells_exit=tells_exit)
            if replay is not None and tells_exit and replay.log.exit_code() is not None:
                return await streams.serve_ended(request, accepted, wanted, replay)
            asked = self._host.runtime.attach(
                pb.AttachRequest(
                    container_id=container_id,
                    tty=wanted.tty,
                    stdin=wanted.stdin,
                    stdout=wanted.stdout,
                    stderr=wanted.stderr,
                )
            )
            try:
                runtime = await _reached(asked, streams.COMMAND_PROTOCOL)
            except HTTPRefusal:
                # The container may just have ended; its exit code follows.
                if replay is None or not tells_exit or not await replay.log.is_complete():
                    raise
                return await streams.serve_ended(request, accepted, wanted, replay)
        except HTTPRefusal as refusal:
            return await _refused(request, accepted, wanted, refusal)
        stopping = partial(self._host.container_stopping, container_id)
        return await streams.serve_command(request, accepted, runtime, wanted, self._stops, stopping, replay)

    async def port_forward(self, request: web.Request) -> web.StreamResponse:
        """Join the client to ports of the pod's network. Raises HTTPRefusal and Unacceptable."""
        accepted = streams.negotiate_ports(request.headers)
        ports = streams.parse_ports(request.query.getall("port", []), accepted)
        pod = self._pod(request)
        sandbox = self._host.ready_sandbox(pod)
        if sandbox is None:
            raise HTTPRefusal(500, f'pod not found ("{pod.metadata.name}_{pod.metadata.namespace}")')
        asked = self._host.runtime.port_forward(sandbox, ports)
        runtime = await _reached(asked, streams.PORT_PROTOCOL)
        ended = partial(self._host.sandbox_ended, sandbox)
        return await streams.serve_ports(request, accepted, runtime, ports, ended, self._stops)

    def _container(self, request: web.Request, *, ended: bool = False) -> tuple[Pod, str, str]:
        """The pod, the container's name and the id it runs under, or with `ended` ran under."""
        pod, name = self._pod(request), request.match_info["container"]
        find = self._host.newest_container if ended else self._host.running_container
        container_id = find(pod, name)
        if container_id is None:
            raise HTTPRefusal(500, f'container not found ("{name}")')
        return pod, name, container_id

    def _pod(self, request: web.Request) -> Pod:
        pod = pod_of(self._host, request)
        if pod is None:
            raise HTTPRefusal(404, "pod does not exist")
        return pod


async def _refused(
    request: web.Request, accepted: Accepted, wanted: CommandStreams, refusal: HTTPRefusal
) -> web.StreamResponse:
    if accepted.protocol not in streams.REFUSED_AFTER_UPGRADE:
        raise refusal
    return await streams.refuse_command(request, accepted, wanted, refusal.text)


async def _reached(asked: Awaitable[str], protocol: str) -> Session:
    """The runtime's end of the streams."""
    try:
        return await streams.connect(await asked, protocol)
    except RuntimeFault as fault:
        raise of_runtime(fault) from fault
    except streams.Unreachable as error:
        raise HTTPRefusal(500, str(error)) from error


def _command_streams(request: web.Request) -> CommandStreams:
    stdin, stdout, stderr, tty = (
        request.query.get(name) == "1" for name in ("input", "output", "error", "tty")
    )
    if not (stdin or stdout or stderr):
        raise HTTPRefusal(400, "you must specify at least 1 of stdin, stdout, stderr")
    return CommandStreams(stdin, stdout, stderr and not tty, tty)
