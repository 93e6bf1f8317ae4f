"""Runs one probe once: exec, httpGet, tcpSocket or grpc. Hooks use the HTTP part as well.

An Outcome is a success or a failure of the container; a ProbeError means that the probe could not be run.
HTTP verifies no certificate, keeps no connection and reads only the beginning of the body. A redirect is
followed only on the same host, as another host's health says nothing about this container.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from multidict import CIMultiDict
from yarl import URL

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.cri_config.sandbox import parse_resolv_conf
from podling.kubelet.pod.containers import rpc_text
from podling.model.types.container import EphemeralContainerCommon, HTTPGetAction, Probe, TCPSocketAction
from podling.process.grpc import Link, Peer, StatusError
from podling.process.http2 import DEADLINE_EXCEEDED, UNIMPLEMENTED

OUTPUT_LIMIT = 10 * 1024
LAST_PORT = 65535

METHOD = "/grpc.health.v1.Health/Check"
LONGEST_ANSWER = 32 * 1024
"""Bytes of a whole connection for the health of a pod, which decides what it sends. An answer has some
hundred; so many, of the frames that are dearest, take 11 ms to read."""
RECONNECT = 1.0
"""Seconds between attempts to connect, within the timeout of a probe."""
SERVING = 1
_STATUSES = {0: "UNKNOWN", SERVING: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}

RESOLV_CONF = Path("/etc/resolv.conf")
PLAIN = "http: server gave HTTP response to HTTPS client"
BODY_LIMIT = 10 * 1024
REDIRECT_LIMIT = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_ADDED_UNASKED = ("Accept-Encoding", "User-Agent", "Accept")


class Outcome(NamedTuple):
    """The outcome of one probe. `message` is the reason of a failure, or a warning about a success."""

    success: bool
    message: str = ""


class ProbeError(Exception):
    """The probe could not be run, which does not count as a failure of the container."""


class Target(msgspec.Struct, frozen=True):
    """The instance to probe."""

    container: EphemeralContainerCommon
    id: str
    pod_ip: str


async def check(runtime: Runtime, probe: Probe, target: Target, user_agent: str) -> Outcome:
    """Run the probe once, for at most its timeoutSeconds. Raises ProbeError."""
    timeout = probe.timeout_seconds
    if probe.exec is not None:
        command = probe.exec.command
        try:
            done = await runtime.exec_sync(target.id, command, timeout)
        except RuntimeFault as fault:
            if fault.code == "DEADLINE_EXCEEDED":
                said = f'command timed out: "{" ".join(command)}" timed out after {timeout}s'
                return Outcome(False, said)
            raise ProbeError(rpc_text(fault)) from fault
        output = (done.stdout + done.stderr)[:OUTPUT_LIMIT].decode(errors="replace")
        return Outcome(done.exit_code == 0, output if done.exit_code else "")
    if probe.http_get is not None:
        url = request_url(probe.http_get, target.container, target.pod_ip)
        try:
            answer = await http_get(url, request_headers(probe.http_get, user_agent), timeout)
        except HttpFailure as failure:
            return Outcome(False, str(failure))
        if not 200 <= answer.status < 400:
            return Outcome(False, f"HTTP probe failed with statuscode: {answer.status}")
        odd = f"Probe terminated redirects, Response body: {answer.body}" if answer.status >= 300 else ""
        return Outcome(True, odd)
    if probe.tcp_socket is not None:
        return await _tcp(probe.tcp_socket, target, timeout)
    if probe.grpc is not None:
        port, service = probe.grpc.port, probe.grpc.service or ""
        return await check_grpc(target.pod_ip, port, service, timeout, user_agent)
    raise ProbeError(f"missing probe handler for {target.container.name}")


async def _tcp(action: TCPSocketAction, target: Target, timeout: int) -> Outcome:
    host, port = action.host or target.pod_ip, port_number(action.port, target.container)
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return Outcome(False, dial_failure(host, port, error))
    except UnicodeError as error:
        raise ProbeError(f"{host!r} is no host: {error}") from error
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return Outcome(True)


def dial_failure(host: str, port: int, error: OSError) -> str:
    """A failed connection, in Go's words, as events show it."""
    if isinstance(error, socket.gaierror):
        why = "server misbehaving" if error.errno == socket.EAI_AGAIN else "no such host"
        return f"dial tcp: lookup {host} on {address(_name_server(), 53)}: {why}"
    words = os.strerror(error.errno).lower() if error.errno else str(error)
    why = "i/o timeout" if isinstance(error, TimeoutError) else f"connect: {words}"
    return f"dial tcp {address(host, port)}: {why}"


def _name_server() -> str:
    """The machine's first, or who Go asks without one."""
    try:
        return next(iter(parse_resolv_conf(RESOLV_CONF.read_text()).servers), "127.0.0.1")
    except OSError:
        return "127.0.0.1"


def tls_failure(error: ssl.SSLError) -> str:
    """In Go's words: of alerts their names."""
    reason = error.reason or ""
    if reason == "WRONG_VERSION_NUMBER":
        return PLAIN
    _, alert, name = reason.partition("_ALERT_")
    if not alert:
        return "EOF" if isinstance(error, ssl.SSLEOFError) else str(error)
    words = "protocol version not supported" if name == "PROTOCOL_VERSION" else name.lower().replace("_", " ")
    return f"remote error: tls: {words}"


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _linked(peer: Peer) -> Link:
    """Once it takes a connection: a server may be about to listen."""
    while True:
        try:
            return await peer.link()
        except StatusError:
            await asyncio.sleep(RECONNECT)


async def check_grpc(host: str, port: int, service: str, timeout: int, user_agent: str) -> Outcome:
    """Ask the gRPC health service."""
    target, loop = address(host, port), asyncio.get_running_loop()
    peer = Peer(
        target,
        lambda link: loop.create_connection(link, host, port),
        connects_within=timeout,
        most=LONGEST_ANSWER,
    )
    # The request has one string and the response one number, both in field 1. On the wire these are the
    # well-known wrapper messages, so no generated code is needed.
    asked = StringValue(value=service).SerializeToString()
    try:
        try:
            async with asyncio.timeout(timeout):
                link = await _linked(peer)
        except TimeoutError:
            why = f'"{target}" within {timeout}s: context deadline exceeded'
            return Outcome(False, f"timeout: failed to connect service {why}")
        told = await link.ask(METHOD, asked, (("user-agent", user_agent),), seconds=timeout)
        answer = Int32Value.FromString(told).value
    except StatusError as error:
        messages = {
            UNIMPLEMENTED: (
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
                f"{error}"
            ),
            DEADLINE_EXCEEDED: f"timeout: health rpc did not complete within {timeout}s",
        }
        failed = f"error: health rpc probe failed: {rpc_text(RuntimeFault(error.name, str(error)))}"
        return Outcome(False, messages.get(error.code, failed))
    except DecodeError as error:
        return Outcome(False, f"error: health rpc probe failed: {error}")
    finally:
        await peer.close()
    if answer == SERVING:
        return Outcome(True)
    return Outcome(False, f'service unhealthy (responded with "{_STATUSES.get(answer, str(answer))}")')


def port_number(port: int | str, container: EphemeralContainerCommon) -> int:
    """A port given by number or by the name of a container port. Raises ProbeError."""
    named = {found.name: found.container_port for found in reversed(container.ports)}
    number = port if isinstance(port, int) else named.get(port)
    if number is None:
        if not str(port).isdecimal():
            raise ProbeError(f'strconv.Atoi: parsing "{port}": invalid syntax')
        number = int(port)
    if not 0 < number <= LAST_PORT:
        raise ProbeError(f"invalid port number: {number}")
    return number


class HttpAnswer(NamedTuple):
    status: int
    body: str


class HttpFailure(Exception):
    """The request failed without an answer."""

    def __init__(self, url: URL, why: str) -> None:
        super().__init__(f'Get "{url}": {why}')
        self.is_plain = why == PLAIN
        """Whether who was asked for TLS answers without."""


def request_url(action: HTTPGetAction, container: EphemeralContainerCommon, pod_ip: str) -> URL:
    """Raises ProbeError for an invalid port or host."""
    port = port_number(action.port, container)
    path = action.path if action.path.startswith("/") else f"/{action.path}"
    where = address(action.host or pod_ip, port)
    try:
        return URL(f"{(action.scheme or 'HTTP').lower()}://{where}{path}")
    except ValueError as error:
        raise ProbeError(str(error)) from error


def request_headers(action: HTTPGetAction, user_agent: str) -> CIMultiDict[str]:
    """The headers that the probe sends: its own, and Go's where it has none."""
    headers = CIMultiDict((header.name, header.value) for header in action.http_headers)
    headers.setdefault("User-Agent", user_agent)
    headers.setdefault("Accept", "*/*")
    for name in ("User-Agent", "Accept"):
        # Given empty, they are not to be sent at all.
        if not headers[name]:
            del headers[name]
    return headers


async def http_get(url: URL, headers: CIMultiDict[str], timeout: float | None) -> HttpAnswer:
    """`timeout` in seconds; None for no limit. A redirect to another host is returned as the answer. Raises
    HttpFailure, also after too many redirects."""
    try:
        async with asyncio.timeout(timeout):
            return await _follow(url, headers)
    except TimeoutError:
        why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    except aiohttp.ClientConnectorError as error:
        if isinstance(failed := error.os_error, ssl.SSLError):
            why = tls_failure(failed)
        else:
            why = dial_failure(error.host, error.port or 0, failed)
    except aiohttp.ServerDisconnectedError:
        why = "EOF"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = str(error)
    raise HttpFailure(url, why)


async def _follow(url: URL, headers: CIMultiDict[str]) -> HttpAnswer:
    connector = aiohttp.TCPConnector(ssl=False, force_close=True)
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=_ADDED_UNASKED) as session:
        for _ in range(REDIRECT_LIMIT):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                location = answer.headers.get("Location") if answer.status in _REDIRECTS else None
                target = url.join(URL(location)) if location else None
                if target is None or target.host != url.host:
                    body = await answer.content.read(BODY_LIMIT)
                    return HttpAnswer(answer.status, body.decode(errors="replace"))
            url = target
    raise ValueError(f"stopped after {REDIRECT_LIMIT} redirects")
