"""Doing what a lifecycle hook says: a command in it, an HTTP request to it, or a while of nothing."""

from __future__ import annotations

import asyncio

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.pod.faults import rpc_text
from podling.kubelet.probes.check import Target
from podling.kubelet.probes.http_get import HttpFailure, http_get, request_headers, request_url
from podling.kubelet.probes.outcome import ProbeError
from podling.model.container import ExecAction, HTTPGetAction, LifecycleHandler


class HookError(Exception):
    """The hook failed. Its text may carry what the command printed, so it is for the log alone."""


async def run_hook(runtime: Runtime, handler: LifecycleHandler, target: Target, user_agent: str) -> None:
    """Takes as long as it takes; raises HookError."""
    if handler.exec is not None:
        await _exec(runtime, handler.exec, target)
    elif handler.http_get is not None:
        await _http(handler.http_get, target, user_agent)
    elif handler.sleep is not None:
        await asyncio.sleep(handler.sleep.seconds)
    else:
        # tcpSocket is a field of the API's that never had a meaning here.
        raise HookError(f"invalid handler: {handler}")


async def _exec(runtime: Runtime, action: ExecAction, target: Target) -> None:
    try:
        done = await runtime.exec_sync(target.id, action.command, 0)
    except RuntimeFault as fault:
        raise HookError(rpc_text(fault)) from fault
    if done.exit_code:
        output = (done.stdout + done.stderr).decode(errors="replace")
        raise HookError(f"command '{' '.join(action.command)}' exited with {done.exit_code}: {output}")


async def _http(action: HTTPGetAction, target: Target, user_agent: str) -> None:
    """Any answer will do: only that the container was told counts."""
    try:
        url = request_url(action, target.container, target.pod_ip)
        await http_get(url, request_headers(action, user_agent), None)
    except (ProbeError, HttpFailure) as error:
        raise HookError(str(error)) from error
