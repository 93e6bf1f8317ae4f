"""The kubelet's HTTPS server: logs, exec, attach, port-forward, as Kubernetes' API server asks a kubelet for
them.

Only clients with a certificate of the cluster's authority are answered, and `allowed` decides which of those.
Answers are plain text and status codes as the kubelet gives them; the API server makes a Status of them.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet import streams
from podling.kubelet.command_relay import CommandStreams
from podling.kubelet.log_directories import LogDirectories
from podling.kubelet.log_request import LogRequest, NoLog, has_container, log_of, parse_request
from podling.kubelet.logs import follow_log, send_log
from podling.kubelet.pod_host import PodHost
from podling.model.pod import Pod
from podling.model.time import Clock
from podling.streaming.errors import Disconnected
from podling.streaming.negotiation import Unacceptable

HEADER_LIMIT = 1 << 20
"""An exec names its command in the URL."""
SHUTDOWN_GRACE = 1.0

Allowed = Callable[[str, tuple[str, ...]], bool]
"""Whether a user (the certificate's common name), with its groups (organizations), may use the kubelet."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def masters_only(user: str, groups: tuple[str, ...]) -> bool:
    return "system:masters" in groups


def server_tls(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    """Clients may present a certificate; one of another authority ends the handshake, none is answered
    401.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_ca))
    context.load_cert_chain(certificate, key)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


class KubeletServer:
    def __init__(self, host: PodHost, clock: Clock, allowed: Allowed = masters_only) -> None:
        self._host = host
        self._clock = clock
        self._allowed = allowed
        self._logs = LogDirectories()

    async def run(self) -> None:
        """Wakes those who follow logs; runs as long as the server listens."""
        await self._logs.run()

    @asynccontextmanager
    async def listening(self, address: str, port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
        """Serve while the block runs; gives the port. Raises OSError when the port cannot be had."""
        runner = web.AppRunner(
            self._application(),
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=SHUTDOWN_GRACE,
            max_line_size=HEADER_LIMIT,
            max_field_size=HEADER_LIMIT,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, address, port, ssl_context=tls)
            await site.start()
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    def _application(self) -> web.Application:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            return self._refusal(request) or await _answered(request, handler)

        application = web.Application(middlewares=[guarded])
        add = application.router.add_route
        add("GET", "/healthz", _healthz)
        add("GET", "/pods", self._pods)
        add("GET", "/containerLogs/{namespace}/{pod}/{container}", self._container_logs)
        for method in ("GET", "POST"):
            for uid in ("", "/{uid}"):
                add(method, f"/exec/{{namespace}}/{{pod}}{uid}/{{container}}", self._exec)
                add(method, f"/attach/{{namespace}}/{{pod}}{uid}/{{container}}", self._attach)
                add(method, f"/portForward/{{namespace}}/{{pod}}{uid}", self._port_forward)
        return application

    def _refusal(self, request: web.Request) -> web.Response | None:
        certificate = request.get_extra_info("peercert")
        if not certificate:
            return web.Response(status=401, text="Unauthorized")
        said = [pair for names in certificate["subject"] for pair in names]
        user = next((value for kind, value in said if kind == "commonName"), "")
        groups = tuple(value for kind, value in said if kind == "organizationName")
        if self._allowed(user, groups):
            return None
        verb = {"GET": "get", "POST": "create"}.get(request.method, request.method.lower())
        return web.Response(
            status=403, text=f"Forbidden (user={user}, verb={verb}, resource=nodes, subresource(s)=[proxy])"
        )

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self._host.pods()}
        return web.Response(body=msgspec.json.encode(listed), content_type="application/json")

    async def _container_logs(self, request: web.Request) -> web.StreamResponse:
        pod, name = self._pod(request), request.match_info["container"]
        if pod is None:
            raise web.HTTPNotFound(text=f'pod "{request.match_info["pod"]}" does not exist\n')
        if not has_container(pod, name):
            raise web.HTTPNotFound(text=f'container "{name}" not found in pod "{pod.metadata.name}"\n')
        try:
            wanted = parse_request(request.query, self._clock.now())
            api_id = log_of(pod, name, previous=wanted.previous)
        except (NoLog, ValueError) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return await self._send_log(request, wanted, api_id)

    async def _send_log(self, request: web.Request, wanted: LogRequest, api_id: str) -> web.StreamResponse:
        container_id = api_id.partition("://")[2]
        try:
            log = Path((await self._host.runtime.container_status(container_id)).log_path)
            log.stat()
        except (RuntimeFault, OSError) as error:
            raise web.HTTPBadRequest(text=f"unable to retrieve container logs for {api_id}") from error

        async def ended() -> bool:
            await self._host.container_ended(container_id)
            return await self._is_complete(container_id)

        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        tail = wanted.tail_lines
        try:
            if wanted.follow:
                await follow_log(
                    log, wanted.options, response.write, directories=self._logs, ended=ended, tail_lines=tail
                )
            else:
                await send_log(log, wanted.options, response.write, tail_lines=tail)
        except* ConnectionError:
            pass
        return response

    async def _is_complete(self, container_id: str) -> bool:
        """A runtime calls a container exited once it has written all of its log."""
        try:
            status = await self._host.runtime.container_status(container_id)
        except RuntimeFault:
            return True
        return status.state != pb.CONTAINER_RUNNING

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        accepted, wanted = streams.negotiate_command(request.headers), _command_streams(request)
        container_id = self._running(request)
        url = await self._host.runtime.exec(
            pb.ExecRequest(
                container_id=container_id,
                cmd=request.query.getall("command", []),
                tty=wanted.tty,
                stdin=wanted.stdin,
                stdout=wanted.stdout,
                stderr=wanted.stderr,
            )
        )
        return await streams.serve_command(request, accepted, url, wanted)

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        accepted, wanted = streams.negotiate_command(request.headers), _command_streams(request)
        container_id = self._running(request)
        url = await self._host.runtime.attach(
            pb.AttachRequest(
                container_id=container_id,
                stdin=wanted.stdin,
                tty=wanted.tty,
                stdout=wanted.stdout,
                stderr=wanted.stderr,
            )
        )
        return await streams.serve_command(request, accepted, url, wanted)

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        accepted = streams.negotiate_ports(request.headers)
        ports = streams.parse_ports(request.query.getall("port", []), accepted)
        pod = self._pod(request)
        if pod is None:
            raise web.HTTPNotFound(text="pod does not exist")
        sandbox = self._host.ready_sandbox(pod)
        if sandbox is None:
            raise web.HTTPInternalServerError(text=f'pod not found ("{_full_name(pod)}")')
        url = await self._host.runtime.port_forward(sandbox, ports)
        return await streams.serve_ports(request, accepted, url, ports)

    def _pod(self, request: web.Request) -> Pod | None:
        """With a uid in the path it must be that pod and not another of its name."""
        names = request.match_info
        pod = self._host.pod(names["namespace"], names["pod"])
        if pod is not None and names.get("uid", pod.metadata.uid) != pod.metadata.uid:
            return None
        return pod

    def _running(self, request: web.Request) -> str:
        pod, name = self._pod(request), request.match_info["container"]
        if pod is None:
            raise web.HTTPNotFound(text="pod does not exist")
        container_id = self._host.running_container(pod, name)
        if container_id is None:
            raise web.HTTPInternalServerError(text=f'container not found ("{name}")')
        return container_id


async def _healthz(request: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The answer, also when it is that something went wrong."""
    try:
        return await handler(request)
    except Unacceptable as error:
        return web.Response(status=error.status, text=f"{error.message}\n", headers=error.headers)
    except RuntimeFault as fault:
        return web.Response(status=404 if fault.code == "NOT_FOUND" else 500, text=fault.message)
    except streams.Unreachable as error:
        return web.Response(status=500, text=str(error))
    except Disconnected:
        return web.Response(status=500)


def _command_streams(request: web.Request) -> CommandStreams:
    stdin, stdout, stderr, tty = (
        request.query.get(name) == "1" for name in ("input", "output", "error", "tty")
    )
    if not (stdin or stdout or stderr):
        raise web.HTTPBadRequest(text="you must specify at least 1 of stdin, stdout, stderr")
    return CommandStreams(stdin, stdout, stderr and not tty, tty)


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.name}_{pod.metadata.namespace}"
