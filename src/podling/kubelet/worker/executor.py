"""Applies the planner's actions: calls the runtime and records the outcome.

Creating and starting is tried once; a failure is recorded, and the planner decides when to try again.
Stopping and removing are retried here until they succeed, because nothing else can follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import NOT_FOUND, RuntimeFault
from podling.kubelet.cri_config.environment import field_path, field_paths
from podling.kubelet.cri_config.sandbox import (
    MISSING_DNS,
    NO_DNS,
    dns_warnings,
    host_network_hosts_file,
    hostname_and_domain,
    hosts_file,
    sandbox_config,
)
from podling.kubelet.plan.containers import stop_container
from podling.kubelet.plan.ending import MINIMUM_GRACE
from podling.kubelet.pod.actions import (
    Action,
    CreateSandbox,
    PreStop,
    RecordInitialized,
    RemoveContainer,
    RemoveSandbox,
    ResizePod,
    StartContainer,
    StopContainer,
    StopSandbox,
)
from podling.kubelet.pod.containers import ConfigError, StartError, container_named, refused, rpc_text
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.observed import ObservedSandbox
from podling.kubelet.pod.sandbox import check_handler, runtime_handler, user_namespace
from podling.kubelet.probes.hooks import PodHooks
from podling.kubelet.volumes.pod_volumes import PodVolumes
from podling.kubelet.worker.container_start import ContainerStart
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.observe import (
    PodRecord,
    observe_until_answered,
    observed_container,
    observed_sandbox,
)
from podling.kubelet.worker.resources import PodResize
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.process.waits import Backoff

RETRY = Backoff(0.5, 30.0)
_NO_SANDBOX = "FailedCreatePodSandBox"
_NO_SANDBOX_BECAUSE = "Failed to create pod sandbox: "

log = logging.getLogger(__name__)


class PodActions:
    """Applies the actions of one pod. `claim` is called with every new runtime id before events of it can
    come, `stop_begins` whenever a container's stop begins."""

    def __init__(
        self,
        node: NodeContext,
        record: PodRecord,
        directory: PodDirectory,
        volumes: PodVolumes,
        claim: Callable[[str], None],
        stop_begins: Callable[[], None],
    ) -> None:
        self._node = node
        self._record = record
        self._directory = directory
        self._volumes = volumes
        self._claim = claim
        self._stop_begins = stop_begins
        self._hooks = PodHooks(node, record)
        self._resize = PodResize(node, record)
        self._interruptible: set[asyncio.Task[object]] = set()
        self._preparing: dict[str, asyncio.Task[object]] = {}
        self._ending = False

    async def apply(self, pod: Pod, action: Action) -> None:
        """Returns when the action is done or its failure is recorded. Raises nothing a runtime can cause."""
        match action:
            case CreateSandbox(attempt):
                await self._create_sandbox(pod, attempt)
            case StartContainer():
                await self._start_container(pod, action)
            case StopContainer():
                await self._stop_container(pod, action)
            case PreStop(id, name, grace):
                await self._hooks.pre_stop(pod, name, id, grace)
            case StopSandbox(id):
                await self._until_done(lambda: self._node.runtime.stop_pod_sandbox(id))
                self._record.sandbox_stopped(id)
            case RemoveSandbox(id):
                await self._until_done(lambda: self._node.runtime.remove_pod_sandbox(id))
                self._record.remove_sandbox(id)
            case RemoveContainer(id, name):
                await self._until_done(lambda: self._node.runtime.remove_container(id))
                if gone := self._record.container(id):
                    self._directory.remove_instance(name, gone.attempt)
                self._record.remove_container(id)
                self._hooks.forget(id)
            case ResizePod():
                await self._resize.apply(pod)
            case RecordInitialized(id):
                self._directory.record_initialized(id)
                self._record.initialized |= {id}

    def give_up_starts(self) -> None:
        """The pod is ending: nothing that has not been created will be, and nobody waits for a pull or a
        postStart hook any more."""
        self._ending = True
        for task in self._interruptible:
            task.cancel()

    def give_up_image(self, name: str) -> None:
        """The container is gone from the pod, or is to have another image."""
        if task := self._preparing.get(name):
            task.cancel()

    async def _create_sandbox(self, pod: Pod, attempt: int) -> None:
        events, counts = self._node.events, self._node.pod_counts
        counts.sandboxes += 1
        if attempt:
            events.normal(pod, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        try:
            sandbox = await self._run_sandbox(pod, attempt)
        except StartError as error:
            events.warning(pod, error.reason, error.message)
            counts.sandbox_errors[error.reason] += 1
            self._record.sandbox_failed(error, self._node.clock.now())
            return
        self._record.put_sandbox(sandbox)
        self._record.sandbox_failure = None
        aliases = pod.spec.host_aliases
        if pod.spec.host_network:
            node_file = self._node.config.etc_hosts.read_text(errors="replace")
            text = host_network_hosts_file(node_file, aliases)
        else:
            hostname, domain = hostname_and_domain(pod, self._node.config.cluster_domain)
            text = hosts_file(sandbox.ips, hostname, domain, aliases)
        # Written in place: containers have this very file mounted.
        self._directory.etc_hosts.write_text(text)
        self._directory.etc_hosts.chmod(0o644)

    async def _run_sandbox(self, pod: Pod, attempt: int) -> ObservedSandbox:
        """Raises StartError."""
        try:
            self._resize.make(pod)
        except OSError as error:
            made = "unable to ensure pod container exists: failed to create container for"
            path = self._node.cgroups.path(pod)
            raise StartError("FailedCreatePodContainer", f"{made} {path}: {error}") from error
        try:
            handler = await runtime_handler(self._node.client, pod)
            if pod.spec.host_users is False:
                check_handler(await self._node.features.get(), handler)
            config = self._sandbox_config(pod, attempt)
        except (ConfigError, StatusError, OSError) as error:
            raise StartError(_NO_SANDBOX, f"{_NO_SANDBOX_BECAUSE}{error}") from error
        except RuntimeFault as fault:
            raise refused(_NO_SANDBOX, f"{_NO_SANDBOX_BECAUSE}{rpc_text(fault)}", fault) from fault
        for reason, warning in dns_warnings(pod, self._node.facts):
            if reason == MISSING_DNS:
                self._node.events.warning(self._node.own_object.host, reason, NO_DNS)
            self._node.events.warning(pod, reason, warning)
        try:
            id_ = await self._node.runtime.run_pod_sandbox(config, handler)
            self._claim(id_)
            return observed_sandbox(await self._node.runtime.pod_sandbox_status(id_))
        except RuntimeFault as fault:
            await self._look_again(pod)
            raise refused(_NO_SANDBOX, f"{_NO_SANDBOX_BECAUSE}{rpc_text(fault)}", fault) from fault

    async def _start_container(self, pod: Pod, action: StartContainer) -> None:
        sandbox = self._record.newest_sandbox()
        if sandbox is None:
            return
        self._node.counts.start(action.type)
        try:
            try:
                made_with = self._sandbox_config(pod, sandbox.attempt)
            except (ConfigError, OSError) as error:
                raise StartError("CreateContainerConfigError", str(error)) from error
            attempt = ContainerStart(self._node, pod, action, made_with)
            with self._giving_up_when_ending() as task:
                self._preparing[action.name] = task
                try:
                    await attempt.prepare_image()
                    if why := await self._node.admit(pod, sandbox.ips):
                        attempt.warn("Failed", f"Error: {why}")
                        raise StartError("NetworkPolicyNotEnforced", why)
                finally:
                    del self._preparing[action.name]
            if not self._ending and action.name not in self._record.unwanted:
                await self._run_container(attempt, sandbox)
                self._record.succeeded(action.name)
        except StartError as error:
            self._node.counts.failure(action.type, error.reason)
            now = self._record.sandbox(sandbox.id)
            if now is not None and now.usable and action.name not in self._record.unwanted:
                # Else it failed only because its sandbox was dying, which says nothing about the container.
                self._record.failed(action.name, error, self._node.clock.now())

    async def _run_container(self, attempt: ContainerStart, sandbox: ObservedSandbox) -> None:
        try:
            id_ = await attempt.create(sandbox.id, sandbox.ips, self._directory, self._volumes)
        except StartError:
            await self._look_again(attempt.pod)
            raise
        self._claim(id_)
        self._record.put_container(attempt.created(id_, sandbox.id))
        try:
            await attempt.start(id_)
        finally:
            await self._learn_container(attempt.pod, id_, sandbox.id)
        if self._ending:
            return
        with self._giving_up_when_ending():
            done = await self._hooks.post_start(attempt.pod, attempt.name, id_)
        if not done:
            # Its restart policy says what follows.
            reason = "FailedPostStartHook"
            stop = stop_container(attempt.pod, id_, attempt.name, reason, reason)
            await self._stop_container(attempt.pod, stop)

    async def _learn_container(self, pod: Pod, id_: str, sandbox_id: str) -> None:
        """Record the container's state from the runtime, also when the call before has failed."""
        try:
            status = await self._node.runtime.container_status(id_)
        except RuntimeFault as fault:
            log.warning("container %s cannot be looked at: %s", id_, fault)
            await self._look_again(pod)
            return
        self._record.put_container(observed_container(status, sandbox_id))

    async def _stop_container(self, pod: Pod, action: StopContainer) -> None:
        if action.restart:
            self._record.restarting.add(action.id)
        self._record.stopping.add(action.id)
        self._stop_begins()
        # By its recorded type, as a removed ephemeral container is not in the spec any more.
        known = self._record.container(action.id)
        path = field_path(known.type, action.name) if known else field_paths(pod).get(action.name, "")
        self._node.events.normal(pod, "Killing", action.message, field_path=path)
        grace = min(action.grace_seconds, action.pod_grace)
        spent = await self._hooks.pre_stop(pod, action.name, action.id, grace)
        left = max(action.grace_seconds - spent, MINIMUM_GRACE)
        signal = stop_signal(pod, action.name)
        await self._until_done(lambda: self._node.runtime.stop_container(action.id, left, signal))
        container = self._record.container(action.id)
        if container is not None and not container.exited:
            await self._learn_container(pod, action.id, container.sandbox_id)

    async def _until_done(self, call: Callable[[], Awaitable[None]]) -> None:
        """Retry until the call succeeds; NOT_FOUND counts as success."""
        wait = RETRY.begin()
        while True:
            try:
                await call()
                return
            except RuntimeFault as fault:
                if fault.code == NOT_FOUND:
                    return
                log.warning("the runtime could not stop or remove: %s", rpc_text(fault))
            await asyncio.sleep(wait.next())

    async def _look_again(self, pod: Pod) -> None:
        """A call that failed may still have left something behind in the runtime: nothing is made again
        before it has said what."""
        uid, since = pod.metadata.uid, self._record.mark()
        found = (await observe_until_answered(self._node.runtime, uid)).get(uid)
        if found is not None:
            for id_ in found.ids():
                self._claim(id_)
            self._record.replace_all(found.sandboxes, found.containers, since)

    @contextmanager
    def _giving_up_when_ending(self) -> Iterator[asyncio.Task[object]]:
        task = asyncio.current_task()
        assert task is not None
        self._interruptible.add(task)
        try:
            yield task
        finally:
            self._interruptible.discard(task)

    def _sandbox_config(self, pod: Pod, attempt: int) -> pb.PodSandboxConfig:
        return sandbox_config(
            pod,
            attempt,
            self._node.facts,
            log_directory=str(self._directory.logs),
            cgroup_parent=self._node.cgroups.path(pod),
            users=user_namespace(self._node.config.pods_dir, pod),
        )


def stop_signal(pod: Pod, name: str) -> str:
    """The one the container asks for, "" for its image's."""
    container = container_named(pod, name)
    lifecycle = container.lifecycle if container else None
    return (lifecycle.stop_signal or "") if lifecycle else ""
