"""A container runtime in memory that implements the runtime interface, with scripted outcomes (`script.py`).

It is for tests of the kubelet in virtual time and for clusters of many nodes. Nothing runs, but the states,
events, exit codes, faults and log files are those a runtime would give; the contract suite compares it with
containerd.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from ipaddress import IPv4Network

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.script import (
    KILLED,
    HollowContainer,
    HollowImage,
    HollowImages,
    HollowSandbox,
    Script,
    SystemTimers,
    Timers,
    carries,
    new_container,
    new_sandbox,
    write_log,
)
from podling.cri.interface import (
    EventKind,
    ImageMount,
    PullProgress,
    RuntimeEvent,
    RuntimeFault,
    RuntimeFeatures,
    told_features,
)


class HollowRuntime:
    """Implements `podling.cri.interface.Runtime`.

    `images` are those a pull can find; any other is not found. `calls` lists the calls that changed
    something, as `start app#0` or `run default/web#1`, in order.
    """

    def __init__(
        self, images: Mapping[str, HollowImage], timers: Timers | None = None, subnet: str = "10.88.0.0/16"
    ) -> None:
        self.targets = True
        """Whether a container can join the process namespace of another."""
        can = pb.RuntimeHandlerFeatures(recursive_read_only_mounts=True, user_namespaces=True)
        self.handlers = [pb.RuntimeHandler(name="", features=can)]
        """What it says of its handlers; nothing, like an old runtime, when there are none."""
        self.image_place = "/"
        """Where it says that images are."""
        self.calls: list[str] = []
        self._timers = timers or SystemTimers()
        self._images = HollowImages(images, self._timers)
        self._sandboxes: dict[str, HollowSandbox] = {}
        self._containers: dict[str, HollowContainer] = {}
        self._listeners: set[asyncio.Queue[RuntimeEvent]] = set()
        self._connected = True
        self._addresses = IPv4Network(subnet).hosts()

    # What happens to it, by the hand of a test

    def exit(self, container_id: str, exit_code: int, *, reason: str = "") -> None:
        """The container exits by itself, now. Does nothing when it does not run."""
        container = self._containers.get(container_id)
        if container is not None and container.runs:
            container.end(exit_code, self._now(), reason)
            finished_at = container.status.finished_at
            self._tell(RuntimeEvent(EventKind.EXITED, container_id, exit_code, finished_at))

    def lose_sandbox(self, sandbox_id: str) -> None:
        """The sandbox's process dies, and with it all its containers."""
        for container_id, container in self._containers.items():
            if container.sandbox_id == sandbox_id:
                self.exit(container_id, KILLED)
        status = self._sandboxes[sandbox_id].status
        if status.state == pb.SANDBOX_READY:
            status.state = pb.SANDBOX_NOTREADY
            status.ClearField("network")
            self._tell(RuntimeEvent(EventKind.EXITED, sandbox_id, KILLED, self._now()))

    def disconnect(self) -> None:
        """The event stream breaks: events from now on are lost."""
        self._connected = False

    def reconnect(self) -> None:
        """The event stream is back."""
        self._connected = True
        self._tell(RuntimeEvent(EventKind.RELIST))

    # The promise

    async def version(self) -> pb.VersionResponse:
        return pb.VersionResponse(
            version="0.1.0", runtime_name="hollow", runtime_version="1.0.0", runtime_api_version="v1"
        )

    async def status(self) -> pb.StatusResponse:
        ready = [pb.RuntimeCondition(type=name, status=True) for name in ("RuntimeReady", "NetworkReady")]
        return pb.StatusResponse(
            status=pb.RuntimeStatus(conditions=ready),
            runtime_handlers=self.handlers,
            features=pb.RuntimeFeatures(supplemental_groups_policy=True),
        )

    async def features(self) -> RuntimeFeatures:
        return told_features(await self.version(), await self.status())

    async def run_pod_sandbox(self, config: pb.PodSandboxConfig, runtime_handler: str = "") -> str:
        on_node = config.linux.security_context.namespace_options.network == pb.NODE
        address = "" if on_node else str(next(self._addresses))
        sandbox = new_sandbox(config, runtime_handler, address, self._now())
        self.calls.append(f"run {sandbox.label}")
        self._sandboxes[sandbox.status.id] = sandbox
        self._tell(RuntimeEvent(EventKind.STARTED, sandbox.status.id))
        return sandbox.status.id

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        self.calls.append(f"stop {self._sandbox(sandbox_id).label}")
        self.lose_sandbox(sandbox_id)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        if sandbox_id not in self._sandboxes:
            return
        self.lose_sandbox(sandbox_id)
        for container_id in [i for i, c in self._containers.items() if c.sandbox_id == sandbox_id]:
            del self._containers[container_id]
        self.calls.append(f"remove {self._sandboxes.pop(sandbox_id).label}")

    async def pod_sandbox_status(self, sandbox_id: str) -> pb.PodSandboxStatus:
        status = pb.PodSandboxStatus()
        status.CopyFrom(self._sandbox(sandbox_id).status)
        return status

    async def list_pod_sandbox(self, labels: Mapping[str, str] | None = None) -> list[pb.PodSandbox]:
        return [s.as_listed() for s in self._sandboxes.values() if carries(s.status.labels, labels)]

    async def create_container(
        self, sandbox_id: str, config: pb.ContainerConfig, sandbox_config: pb.PodSandboxConfig
    ) -> str:
        self._sandbox(sandbox_id)
        if not self.targets and config.linux.security_context.namespace_options.pid == pb.TARGET:
            raise RuntimeFault("UNIMPLEMENTED", "namespace mode TARGET is unsupported")
        script = self._images.script(config.image.image, config.metadata.attempt)
        container = new_container(sandbox_id, config, sandbox_config.log_directory, script, self._now())
        self.calls.append(f"create {container.label}")
        if script.create_fault is not None:
            raise script.create_fault
        self._containers[container.status.id] = container
        return container.status.id

    async def start_container(self, container_id: str) -> None:
        container = self._container(container_id)
        self.calls.append(f"start {container.label}")
        if container.status.state != pb.CONTAINER_CREATED:
            raise RuntimeFault("UNKNOWN", f'container "{container_id}" was started before')
        script = container.script
        if script.start_fault is not None:
            container.end(128, self._now(), "StartError", script.start_fault.message)
            raise script.start_fault
        container.status.state = pb.CONTAINER_RUNNING
        container.status.started_at = self._now()
        if container.status.log_path:
            write_log(container.status.log_path, self._timers.now(), script)
        self._tell(RuntimeEvent(EventKind.STARTED, container_id))
        if script.exit_code is not None:
            self._timers.call_later(script.after, lambda: self._run_out(container_id, script))

    async def stop_container(self, container_id: str, timeout: int, signal: str = "") -> None:
        container = self._container(container_id)
        self.calls.append(f"stop {container.label} {signal}".rstrip())
        if container.runs:
            self._terminate(container, timeout)
            await container.ended.wait()

    async def remove_container(self, container_id: str) -> None:
        container = self._containers.get(container_id)
        if container is not None:
            self.exit(container_id, KILLED)
            del self._containers[container_id]
            self.calls.append(f"remove {container.label}")

    async def list_containers(self, labels: Mapping[str, str] | None = None) -> list[pb.Container]:
        return [c.as_listed() for c in self._containers.values() if carries(c.status.labels, labels)]

    async def container_status(self, container_id: str) -> pb.ContainerStatus:
        status = pb.ContainerStatus()
        status.CopyFrom(self._container(container_id).status)
        return status

    async def update_container_resources(
        self, container_id: str, resources: pb.LinuxContainerResources
    ) -> None:
        container = self._container(container_id)
        self.calls.append(f"update {container.label}")
        if container.script.update_fault is not None:
            raise container.script.update_fault
        container.resources = resources

    async def reopen_container_log(self, container_id: str) -> None:
        self.calls.append(f"reopen log of {self._running(container_id).label}")

    async def exec_sync(self, container_id: str, command: list[str], timeout: int) -> pb.ExecSyncResponse:
        container = self._running(container_id)
        self.calls.append(f"exec {container.label} {' '.join(command)}")
        outcome = container.script.executes.get(tuple(command))
        if outcome is None:
            raise RuntimeFault("UNKNOWN", f'exec: "{command[0]}": executable file not found in $PATH')
        if outcome.seconds:
            await self._execute(container, outcome.seconds, timeout)
        return pb.ExecSyncResponse(stdout=outcome.stdout, stderr=outcome.stderr, exit_code=outcome.exit_code)

    async def exec(self, request: pb.ExecRequest) -> str:
        raise _no_streams()

    async def attach(self, request: pb.AttachRequest) -> str:
        raise _no_streams()

    async def port_forward(self, sandbox_id: str, ports: list[int]) -> str:
        raise _no_streams()

    async def list_container_stats(self) -> list[pb.ContainerStats]:
        return [container.stats(self._now()) for container in self._containers.values() if container.runs]

    async def image_status(self, image: str) -> pb.Image | None:
        return self._images.status(image)

    async def list_images(self) -> list[pb.Image]:
        return self._images.all()

    async def pull_image(
        self, image: str, auth: pb.AuthConfig | None = None, sandbox_config: pb.PodSandboxConfig | None = None
    ) -> str:
        self.calls.append(f"pull {image}")
        try:
            await self._images.fetch(image)
        except asyncio.CancelledError:
            self.calls.append(f"cancel pull {image}")
            raise
        return self._images.pull(image)

    async def pull_progress(self) -> PullProgress | None:
        return self._images.progress()

    async def remove_image(self, image: str) -> None:
        self.calls.append(f"remove image {image}")
        self._images.remove(image)

    async def image_fs_info(self) -> pb.ImageFsInfoResponse:
        place = pb.FilesystemIdentifier(mountpoint=self.image_place)
        used = pb.UInt64Value(value=sum(image.size for image in self._images.all()))
        usage = pb.FilesystemUsage(timestamp=self._now(), fs_id=place, used_bytes=used)
        return pb.ImageFsInfoResponse(image_filesystems=[usage])

    async def hold_image(self, name: str, image: str) -> list[ImageMount]:
        raise RuntimeFault("UNIMPLEMENTED", "images are mounted by their name")

    async def let_image_go(self, name: str) -> None:
        """None is held."""

    async def held_images(self) -> list[str]:
        return []

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        queue: asyncio.Queue[RuntimeEvent] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield RuntimeEvent(EventKind.RELIST)
            while True:
                yield await queue.get()
        finally:
            self._listeners.discard(queue)

    async def close(self) -> None:
        return None

    def _run_out(self, container_id: str, script: Script) -> None:
        if script.out_of_memory:
            self._tell(RuntimeEvent(EventKind.OOM, container_id))
        self.exit(container_id, script.exit_code or 0, reason="OOMKilled" if script.out_of_memory else "")

    def _terminate(self, container: HollowContainer, timeout: int) -> None:
        container_id, term_code = container.status.id, container.script.term_code
        if timeout <= 0:
            self.exit(container_id, KILLED)
        elif term_code is not None:
            self.exit(container_id, term_code)
        else:
            self._timers.call_later(timeout, lambda: self.exit(container_id, KILLED))

    async def _execute(self, container: HollowContainer, seconds: float, timeout: int) -> None:
        """A command takes its time, unless its timeout is shorter or its container exits."""
        async with asyncio.TaskGroup() as tasks:
            ending = tasks.create_task(container.ended.wait())

            def enough() -> None:
                ending.cancel()

            self._timers.call_later(min(seconds, timeout or seconds), enough)
        if container.ended.is_set():
            raise RuntimeFault("UNKNOWN", "the container ended")
        if timeout and seconds > timeout:
            raise RuntimeFault("DEADLINE_EXCEEDED", f"timeout {timeout}s exceeded: context deadline exceeded")

    def _tell(self, event: RuntimeEvent) -> None:
        for queue in self._listeners if self._connected else ():
            queue.put_nowait(event)

    def _now(self) -> int:
        return int(self._timers.now().timestamp() * 1_000_000) * 1000

    def _sandbox(self, sandbox_id: str) -> HollowSandbox:
        try:
            return self._sandboxes[sandbox_id]
        except KeyError:
            raise RuntimeFault("NOT_FOUND", f'failed to find sandbox "{sandbox_id}": not found') from None

    def _container(self, container_id: str) -> HollowContainer:
        try:
            return self._containers[container_id]
        except KeyError:
            raise RuntimeFault("NOT_FOUND", f'failed to find container "{container_id}": not found') from None

    def _running(self, container_id: str) -> HollowContainer:
        container = self._container(container_id)
        if not container.runs:
            raise RuntimeFault("UNKNOWN", f'container "{container_id}" is not running')
        return container


def _no_streams() -> RuntimeFault:
    return RuntimeFault("UNIMPLEMENTED", "nothing runs in this runtime that could be spoken to")
