"""Asking a container once how it is: by a command in it, over HTTP, TCP or gRPC."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.pod.faults import rpc_text
from podling.kubelet.probes.grpc_check import check_grpc
from podling.kubelet.probes.http_get import HttpFailure, http_get, request_headers, request_url
from podling.kubelet.probes.outcome import Outcome, ProbeError, dial_failure
from podling.kubelet.probes.ports import port_number
from podling.model.container import EphemeralContainerCommon, HTTPGetAction, Probe, TCPSocketAction

OUTPUT_LIMIT = 10 * 1024


class Target(msgspec.Struct, frozen=True):
    """Who is asked: an instance of the container, at the pod's address."""

    container: EphemeralContainerCommon
    id: str
    pod_ip: str


async def check(runtime: Runtime, probe: Probe, target: Target, user_agent: str) -> Outcome:
    """Raises ProbeError."""
    timeout = probe.timeout_seconds
    if probe.exec is not None:
        return await _exec(runtime, target, probe.exec.command, timeout)
    if probe.http_get is not None:
        return await _http(probe.http_get, target, timeout, user_agent)
    if probe.tcp_socket is not None:
        return await _tcp(probe.tcp_socket, target, timeout)
    if probe.grpc is not None:
        port, service = probe.grpc.port, probe.grpc.service or ""
        return await check_grpc(target.pod_ip, port, service, timeout, user_agent)
    raise ProbeError(f"missing probe handler for {target.container.name}")


async def _exec(runtime: Runtime, target: Target, command: list[str], timeout: int) -> Outcome:
    try:
        done = await runtime.exec_sync(target.id, command, timeout)
    except RuntimeFault as fault:
        if fault.code == "DEADLINE_EXCEEDED":
            said = f'command timed out: "{" ".join(command)}" timed out after {timeout}s'
            return Outcome(False, said)
        raise ProbeError(rpc_text(fault)) from fault
    output = (done.stdout + done.stderr)[:OUTPUT_LIMIT].decode(errors="replace")
    return Outcome(done.exit_code == 0, output if done.exit_code else "")


async def _http(action: HTTPGetAction, target: Target, timeout: int, user_agent: str) -> Outcome:
    url = request_url(action, target.container, target.pod_ip)
    try:
        answer = await http_get(url, request_headers(action, user_agent), timeout)
    except HttpFailure as failure:
        return Outcome(False, str(failure))
    if not 200 <= answer.status < 400:
        return Outcome(False, f"HTTP probe failed with statuscode: {answer.status}")
    odd = f"Probe terminated redirects, Response body: {answer.body}" if answer.status >= 300 else ""
    return Outcome(True, odd)


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
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return Outcome(True)
