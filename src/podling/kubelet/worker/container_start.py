"""Starts one container: image, environment and mounts, create, start.

Every failure is a StartError with the waiting reason that the status shows, and an event.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import NOT_FOUND, RuntimeFault
from podling.kubelet.cri_config.container import ContainerInputs, container_config
from podling.kubelet.cri_config.environment import (
    EnvSources,
    environment,
    field_path,
    referenced_files,
    referenced_objects,
)
from podling.kubelet.images.images import ImageRequest, PresentImage
from podling.kubelet.plan.resize import resources_to_actuate
from podling.kubelet.plan.restart import definition_hash
from podling.kubelet.pod.actions import StartContainer
from podling.kubelet.pod.containers import ConfigError, ContainerType, StartError, all_containers, refused
from podling.kubelet.pod.directories import PodDirectory, log_path
from podling.kubelet.pod.observed import ContainerState, ObservedContainer
from podling.kubelet.volumes.container_mounts import container_devices, container_mounts
from podling.kubelet.volumes.env_files import read_env_files
from podling.kubelet.volumes.pod_volumes import PodVolumes, as_container, image_volumes
from podling.kubelet.worker.context import NodeContext
from podling.model.errors import StatusError
from podling.model.time import micro_time
from podling.model.types.pod import Pod


class ContainerStart:
    """One attempt, in three steps, so that the caller can note the container between them."""

    def __init__(
        self, node: NodeContext, pod: Pod, action: StartContainer, sandbox_config: pb.PodSandboxConfig
    ) -> None:
        self._node = node
        self.pod = pod
        self._action = action
        self.name = action.name
        self._sandbox_config = sandbox_config
        self._path = field_path(action.type, action.name)
        self._container = next(c for _, c in all_containers(pod) if c.name == action.name)
        self._image = PresentImage("")
        self._volume_images: dict[str, str] = {}
        self._log = Path()

    async def prepare_image(self) -> None:
        """May take as long as a pull takes; giving up is harmless."""
        patterns, image = self._node.config.debug_image_allowlist, self._container.image
        limited = bool(patterns) and self._action.type is ContainerType.EPHEMERAL
        if limited and not any(fnmatchcase(image, pattern) for pattern in patterns):
            message = f'image "{image}" is not on the allowlist of debug images'
            self.warn("Failed", f"Error: {message}")
            raise StartError("ErrImageNotAllowed", message)
        try:
            secrets = await self._node.objects.pull_secrets(self.pod)
            for volume, source in image_volumes(self.pod, self._container):
                request = ImageRequest(self.pod, as_container(source), "", secrets, self._sandbox_config)
                self._volume_images[volume] = (await self._node.images.ensure(request)).id
            self._image = await self._node.images.ensure(
                ImageRequest(self.pod, self._container, self._path, secrets, self._sandbox_config)
            )
        except StartError as error:
            self.warn("Failed", f"Error: {error.reason}")
            raise
        except (StatusError, OSError) as error:
            raise StartError("ErrImagePull", f"pull secrets cannot be read: {error}") from error

    async def create(
        self, sandbox_id: str, pod_ips: tuple[str, ...], directory: PodDirectory, volumes: PodVolumes
    ) -> str:
        """The new container's id."""
        self._log = directory.logs / log_path(self.name, self._action.attempt)
        try:
            config = await self._config(pod_ips, directory, volumes)
        except (ConfigError, StatusError, OSError, RuntimeFault) as error:
            self.warn("Failed", f"Error: {error}")
            raise StartError("CreateContainerConfigError", str(error)) from error
        try:
            container_id = await self._create(sandbox_id, config)
        except RuntimeFault as fault:
            if fault.code == NOT_FOUND:
                self._node.images.forget(self._image.id)
            self.warn("Failed", f"Error: {fault.message}")
            raise refused("CreateContainerError", fault.message, fault) from fault
        self.say("Created", "Container created")
        return container_id

    async def _create(self, sandbox_id: str, config: pb.ContainerConfig) -> str:
        """A runtime that cannot join a target's process namespace makes one of the container's own
        (R-EPH-4).
        """
        create = self._node.runtime.create_container
        options = config.linux.security_context.namespace_options
        try:
            return await create(sandbox_id, config, self._sandbox_config)
        except RuntimeFault as fault:
            unsupported = fault.code == "UNIMPLEMENTED" or "unsupported" in fault.message.lower()
            if options.pid != pb.TARGET or not unsupported:
                raise
        options.pid, options.target_id = pb.CONTAINER, ""
        target = getattr(self._container, "target_container_name", "")
        self.warn(
            "TargetNotSupported",
            f'The runtime cannot join the process namespace of container "{target}": '
            "the container gets one of its own",
        )
        return await create(sandbox_id, config, self._sandbox_config)

    async def start(self, container_id: str) -> None:
        """Start the created container. Raises StartError."""
        try:
            await self._node.runtime.start_container(container_id)
        except RuntimeFault as fault:
            self.warn("Failed", f"Error: {fault.message}")
            if self._action.type is ContainerType.EPHEMERAL:
                # It has one start only, and `kubectl debug` shows the log of one that has ended: it says why
                # it did not start (R-EPH-15).
                at = micro_time(self._node.clock.now())
                with suppress(OSError), self._log.open("a") as log:
                    log.writelines(f"{at} stderr F {line}\n" for line in fault.message.splitlines())
            raise refused("RunContainerError", fault.message, fault, instance=container_id) from fault
        self.say("Started", "Container started")

    def created(self, container_id: str, sandbox_id: str) -> ObservedContainer:
        """What is known of it before it is asked about."""
        return ObservedContainer(
            id=container_id,
            name=self._action.name,
            type=self._action.type,
            sandbox_id=sandbox_id,
            attempt=self._action.attempt,
            state=ContainerState.CREATED,
            created_at=self._node.clock.now(),
            image=self._container.image,
            image_id=self._image.reference,
            hash=definition_hash(self._container),
            crashes=self._action.crashes,
            round=self._action.round,
            resources=resources_to_actuate(self.pod, self._container),
        )

    async def _config(
        self, pod_ips: tuple[str, ...], directory: PodDirectory, volumes: PodVolumes
    ) -> pb.ContainerConfig:
        facts = self._node.facts
        config_maps, secrets = referenced_objects(self._container)
        objects = await self._node.objects.named(self.pod.metadata.namespace, config_maps, secrets)
        services = await self._node.services.variables(self.pod)
        keys = referenced_files(self._container)
        files = await asyncio.to_thread(read_env_files, keys, volumes.mounted) if keys else {}
        sources = EnvSources(facts, pod_ips, objects.config_maps, objects.secrets, services, files)
        values = environment(self.pod, self._container, sources)
        mounted = await volumes.mount_sources(self._container, self._volume_images, values)
        mounts = container_mounts(self._container, self._action, mounted)
        devices = container_devices(self._container, mounted)
        directory.container_logs(self._action.name).mkdir(mode=0o755, parents=True, exist_ok=True)
        users = self._sandbox_config.linux.security_context.namespace_options.userns_options
        inputs = ContainerInputs(self._image.id, self._image.user, values, mounts, users, devices)
        return container_config(self.pod, self._container, self._action, inputs, facts)

    def say(self, reason: str, message: str) -> None:
        self._node.events.normal(self.pod, reason, message, field_path=self._path)

    def warn(self, reason: str, message: str) -> None:
        self._node.events.warning(self.pod, reason, message, field_path=self._path)
