"""Lifecycle hooks of one pod: postStart after a container's start, preStop before its stop.

A preStop hook runs once for an instance, and at most for the grace period. A second stop with less grace
shortens the time of the hook that is running.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import msgspec

from podling.client.events import EventRecorder
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.cri_config.environment import field_paths
from podling.kubelet.pod.containers import container_named, rpc_text
from podling.kubelet.pod.observed import ObservedContainer, ObservedSandbox
from podling.kubelet.pod.sandbox import NodeFacts
from podling.kubelet.probes.check import (
    HttpFailure,
    ProbeError,
    Target,
    http_get,
    request_headers,
    request_url,
)
from podling.model.types.container import (
    EphemeralContainerCommon,
    LifecycleHandler,
)
from podling.model.types.pod import Pod

log = logging.getLogger(__name__)


class HookError(Exception):
    """The hook failed. The message may contain the command's output, so it is only logged."""


async def run_hook(runtime: Runtime, handler: LifecycleHandler, target: Target, user_agent: str) -> None:
    """Run one handler, without a time limit. Raises HookError."""
    if handler.exec is not None:
        command = handler.exec.command
        try:
            done = await runtime.exec_sync(target.id, command, 0)
        except RuntimeFault as fault:
            raise HookError(rpc_text(fault)) from fault
        if done.exit_code:
            output = (done.stdout + done.stderr).decode(errors="replace")
            raise HookError(f"command '{' '.join(command)}' exited with {done.exit_code}: {output}")
    elif handler.http_get is not None:
        # Any HTTP status is a success, as in Kubernetes.
        headers = request_headers(handler.http_get, user_agent)
        try:
            url = request_url(handler.http_get, target.container, target.pod_ip)
            try:
                await http_get(url, headers, None)
            except HttpFailure as failure:
                if not failure.is_plain:
                    raise
                headers.popall("Authorization", None)
                await http_get(url.with_scheme("http").with_port(url.port), headers, None)
        except (ProbeError, HttpFailure) as error:
            raise HookError(str(error)) from error
    elif handler.sleep is not None:
        await asyncio.sleep(handler.sleep.seconds)
    else:
        # tcpSocket, which the API keeps and Kubernetes' kubelet does not support in hooks.
        raise HookError(f"invalid handler: {handler}")


class _PreStop(msgspec.Struct):
    """A preStop hook that has begun; `limit` is its timeout while it runs."""

    limit: asyncio.Timeout | None = None
    done: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class HookNode(Protocol):
    """What the hooks of a pod use of its node."""

    @property
    def config(self) -> KubeletConfig: ...
    @property
    def events(self) -> EventRecorder: ...
    @property
    def facts(self) -> NodeFacts: ...
    @property
    def runtime(self) -> Runtime: ...


class HookRecord(Protocol):
    """What the hooks of a pod use of its worker's record."""

    pre_stopped: set[str]
    """Ids of the containers whose preStop hook has begun."""

    def container(self, container_id: str) -> ObservedContainer | None: ...
    def sandbox(self, sandbox_id: str) -> ObservedSandbox | None: ...


class PodHooks:
    """The lifecycle hooks of one pod."""

    def __init__(self, node: HookNode, record: HookRecord) -> None:
        self._node = node
        self._record = record
        self._pre_stops: dict[str, _PreStop] = {}

    async def post_start(self, pod: Pod, name: str, container_id: str) -> bool:
        """Run the postStart hook, if any. False if it failed: an event says so, and the container must be
        stopped."""
        container = container_named(pod, name)
        lifecycle = container.lifecycle if container else None
        if container is None or lifecycle is None or lifecycle.post_start is None:
            return True
        try:
            await self._run(lifecycle.post_start, container, container_id)
        except HookError as error:
            self._warn(pod, name, "FailedPostStartHook", "PostStartHook failed", error)
            return False
        return True

    async def pre_stop(self, pod: Pod, name: str, id_: str, grace: int) -> int:
        """Run the preStop hook, if any, within `grace` seconds. Returns the seconds it took."""
        self._record.pre_stopped.add(id_)
        container = container_named(pod, name)
        lifecycle = container.lifecycle if container else None
        if container is None or lifecycle is None or lifecycle.pre_stop is None:
            return 0
        loop = asyncio.get_running_loop()
        began = loop.time()
        if begun := self._pre_stops.get(id_):
            limit = begun.limit
            if limit is not None and not limit.expired():
                due = limit.when()
                limit.reschedule(began + grace if due is None else min(due, began + grace))
            await begun.done.wait()
        elif grace and self._runs(id_):
            begun = self._pre_stops[id_] = _PreStop()
            try:
                async with asyncio.timeout(grace) as begun.limit:
                    await self._run(lifecycle.pre_stop, container, id_)
            except TimeoutError:
                # The container takes it along, which is a failure as in Kubernetes.
                self._warn(pod, name, "FailedPreStopHook", "PreStopHook failed", "its time is over")
            except HookError as error:
                if self._runs(id_):
                    self._warn(pod, name, "FailedPreStopHook", "PreStopHook failed", error)
            finally:
                begun.limit = None
                begun.done.set()
        return int(loop.time() - began)

    def forget(self, container_id: str) -> None:
        self._pre_stops.pop(container_id, None)

    async def _run(self, hook: LifecycleHandler, container: EphemeralContainerCommon, id_: str) -> None:
        agent = f"kube-lifecycle/{self._node.config.minor_version}"
        instance = self._record.container(id_)
        sandbox = self._record.sandbox(instance.sandbox_id) if instance else None
        pod_ip = sandbox.ips[0] if sandbox and sandbox.ips else self._node.facts.ips[0]
        target = Target(container, id_, pod_ip)
        await run_hook(self._node.runtime, hook, target, agent)

    def _runs(self, container_id: str) -> bool:
        instance = self._record.container(container_id)
        return instance is not None and instance.running

    def _warn(self, pod: Pod, name: str, reason: str, message: str, why: object) -> None:
        log.info("%s of container %s: %s", reason, name, why)
        path = field_paths(pod).get(name, "")
        self._node.events.warning(pod, reason, message, field_path=path)
