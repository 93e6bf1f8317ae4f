"""`GrpcRuntime`, a CRI v1 runtime behind a socket: each method of the interface is one call of the protocol.

It decides nothing. A call that changes something has a deadline of two minutes, as in Kubernetes' kubelet (a
sandbox has four, because networks may be slow), a query half a minute. A call with a timeout of its own gets
that on top. Pulling an image has no deadline: the caller cancels a pull without progress.

`ContainerdPulls` reads the progress of pulls from containerd's content and snapshots services, because CRI
reports nothing before a pull is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from google.protobuf.message import Message

from podling.cri.grpc import containerd_content_pb2 as content_pb
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.connection import Answer, Connection
from podling.cri.grpc.containerd_images import ContainerdImages
from podling.cri.grpc.containerd_tasks import ContainerdTasks
from podling.cri.grpc.events import Sleep, runtime_events
from podling.cri.interface import (
    ImageMount,
    PullProgress,
    RuntimeEvent,
    RuntimeFault,
    RuntimeFeatures,
    told_features,
)

_LIST = "/containerd.services.content.v1.Content/ListStatuses"
_METADATA = (("containerd-namespace", "k8s.io"),)
_DEADLINE = 30.0
_CHANGE = 120.0
_SANDBOX = 240.0
_QUESTION = 30.0


class ContainerdPulls:
    """What containerd's content service knows of the pulls under way."""

    def __init__(self, connection: Connection, images: ContainerdImages) -> None:
        self._connection = connection
        self._images = images

    async def progress(self) -> PullProgress | None:
        """Bytes present of each blob. None while everything is there and layers are unpacked, which no
        service shows, and from a runtime that is not containerd. Raises RuntimeFault."""
        try:
            answer = await self._connection.call(
                _LIST, content_pb.ListStatusesRequest(), content_pb.ListStatusesResponse, _DEADLINE, _METADATA
            )
            fetched = frozenset((status.ref, status.offset) for status in answer.statuses)
            # The place to unpack a layer to is made before the layer is fetched.
            return fetched or (None if await self._images.unpacking() else fetched)
        except RuntimeFault as fault:
            if fault.code == "UNIMPLEMENTED":
                return None
            raise


class GrpcRuntime:
    """Keeps `podling.cri.interface.Runtime`. `endpoint` is a socket's path, with or without `unix://`.

    Belongs to the event loop it is made in. `sleep` is how the event stream waits between attempts.
    """

    def __init__(self, endpoint: str, *, sleep: Sleep = asyncio.sleep) -> None:
        self._connection = Connection(endpoint)
        self._containerd_images = ContainerdImages(self._connection)
        self._containerd_pulls = ContainerdPulls(self._connection, self._containerd_images)
        self._containerd_tasks = ContainerdTasks(self._connection)
        self._sleep = sleep

    async def _runtime(self, request: Message, answer: type[Answer], deadline: float | None) -> Answer:
        path = f"/runtime.v1.RuntimeService/{_method_of(request)}"
        return await self._connection.call(path, request, answer, deadline)

    async def _image(self, request: Message, answer: type[Answer], deadline: float | None) -> Answer:
        path = f"/runtime.v1.ImageService/{_method_of(request)}"
        return await self._connection.call(path, request, answer, deadline)

    async def version(self) -> pb.VersionResponse:
        return await self._runtime(pb.VersionRequest(version="v1"), pb.VersionResponse, _QUESTION)

    async def status(self) -> pb.StatusResponse:
        return await self._runtime(pb.StatusRequest(), pb.StatusResponse, _QUESTION)

    async def features(self) -> RuntimeFeatures:
        return told_features(await self.version(), await self.status())

    async def run_pod_sandbox(self, config: pb.PodSandboxConfig, runtime_handler: str = "") -> str:
        request = pb.RunPodSandboxRequest(config=config, runtime_handler=runtime_handler)
        return (await self._runtime(request, pb.RunPodSandboxResponse, _SANDBOX)).pod_sandbox_id

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        request = pb.StopPodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._runtime(request, pb.StopPodSandboxResponse, _SANDBOX)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        request = pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._runtime(request, pb.RemovePodSandboxResponse, _CHANGE)

    async def pod_sandbox_status(self, sandbox_id: str) -> pb.PodSandboxStatus:
        request = pb.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
        return (await self._runtime(request, pb.PodSandboxStatusResponse, _QUESTION)).status

    async def list_pod_sandbox(self, labels: Mapping[str, str] | None = None) -> list[pb.PodSandbox]:
        request = pb.ListPodSandboxRequest(filter=pb.PodSandboxFilter(label_selector=labels))
        return list((await self._runtime(request, pb.ListPodSandboxResponse, _QUESTION)).items)

    async def create_container(
        self, sandbox_id: str, config: pb.ContainerConfig, sandbox_config: pb.PodSandboxConfig
    ) -> str:
        request = pb.CreateContainerRequest(
            pod_sandbox_id=sandbox_id, config=config, sandbox_config=sandbox_config
        )
        return (await self._runtime(request, pb.CreateContainerResponse, _CHANGE)).container_id

    async def start_container(self, container_id: str) -> None:
        request = pb.StartContainerRequest(container_id=container_id)
        await self._runtime(request, pb.StartContainerResponse, _CHANGE)

    async def stop_container(self, container_id: str, timeout: int, signal: str = "") -> None:
        if signal and await self._containerd_tasks.end(container_id, signal, timeout):
            timeout = 0
        request = pb.StopContainerRequest(container_id=container_id, timeout=timeout)
        await self._runtime(request, pb.StopContainerResponse, _CHANGE + timeout)

    async def remove_container(self, container_id: str) -> None:
        request = pb.RemoveContainerRequest(container_id=container_id)
        await self._runtime(request, pb.RemoveContainerResponse, _CHANGE)

    async def list_containers(self, labels: Mapping[str, str] | None = None) -> list[pb.Container]:
        request = pb.ListContainersRequest(filter=pb.ContainerFilter(label_selector=labels))
        return list((await self._runtime(request, pb.ListContainersResponse, _QUESTION)).containers)

    async def container_status(self, container_id: str) -> pb.ContainerStatus:
        request = pb.ContainerStatusRequest(container_id=container_id)
        return (await self._runtime(request, pb.ContainerStatusResponse, _QUESTION)).status

    async def update_container_resources(
        self, container_id: str, resources: pb.LinuxContainerResources
    ) -> None:
        request = pb.UpdateContainerResourcesRequest(container_id=container_id, linux=resources)
        await self._runtime(request, pb.UpdateContainerResourcesResponse, _CHANGE)

    async def reopen_container_log(self, container_id: str) -> None:
        request = pb.ReopenContainerLogRequest(container_id=container_id)
        await self._runtime(request, pb.ReopenContainerLogResponse, _QUESTION)

    async def exec_sync(self, container_id: str, command: list[str], timeout: int) -> pb.ExecSyncResponse:
        request = pb.ExecSyncRequest(container_id=container_id, cmd=command, timeout=timeout)
        deadline = _QUESTION + timeout if timeout else None
        return await self._runtime(request, pb.ExecSyncResponse, deadline)

    async def exec(self, request: pb.ExecRequest) -> str:
        return (await self._runtime(request, pb.ExecResponse, _QUESTION)).url

    async def attach(self, request: pb.AttachRequest) -> str:
        return (await self._runtime(request, pb.AttachResponse, _QUESTION)).url

    async def port_forward(self, sandbox_id: str, ports: list[int]) -> str:
        request = pb.PortForwardRequest(pod_sandbox_id=sandbox_id, port=ports)
        return (await self._runtime(request, pb.PortForwardResponse, _QUESTION)).url

    async def list_container_stats(self) -> list[pb.ContainerStats]:
        request = pb.ListContainerStatsRequest()
        return list((await self._runtime(request, pb.ListContainerStatsResponse, _QUESTION)).stats)

    async def image_status(self, image: str) -> pb.Image | None:
        request = pb.ImageStatusRequest(image=pb.ImageSpec(image=image))
        answer = await self._image(request, pb.ImageStatusResponse, _QUESTION)
        return answer.image if answer.HasField("image") else None

    async def list_images(self) -> list[pb.Image]:
        return list((await self._image(pb.ListImagesRequest(), pb.ListImagesResponse, _QUESTION)).images)

    async def pull_image(
        self, image: str, auth: pb.AuthConfig | None = None, sandbox_config: pb.PodSandboxConfig | None = None
    ) -> str:
        request = pb.PullImageRequest(
            image=pb.ImageSpec(image=image), auth=auth, sandbox_config=sandbox_config
        )
        return (await self._image(request, pb.PullImageResponse, None)).image_ref

    async def pull_progress(self) -> PullProgress | None:
        return await self._containerd_pulls.progress()

    async def remove_image(self, image: str) -> None:
        request = pb.RemoveImageRequest(image=pb.ImageSpec(image=image))
        await self._image(request, pb.RemoveImageResponse, _CHANGE)

    async def image_fs_info(self) -> pb.ImageFsInfoResponse:
        return await self._image(pb.ImageFsInfoRequest(), pb.ImageFsInfoResponse, _QUESTION)

    async def hold_image(self, name: str, image: str) -> list[ImageMount]:
        return await self._containerd_images.hold(name, image)

    async def let_image_go(self, name: str) -> None:
        await self._containerd_images.let_go(name)

    async def held_images(self) -> list[str]:
        return await self._containerd_images.held()

    def events(self) -> AsyncIterator[RuntimeEvent]:
        return runtime_events(self._connection, self._sleep)

    async def close(self) -> None:
        await self._connection.close()


def _method_of(request: Message) -> str:
    """CRI names the request message of a method after the method."""
    return type(request).__name__.removesuffix("Request")
