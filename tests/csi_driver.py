"""A CSI driver for tests: identity, controller and node services on one socket, and its registration on
another. Its volumes are directories, and files behind loop devices where a block device is asked for.

    python csi_driver.py NAME ROOT REGISTRY     serves until it is killed

What it was asked is in `ROOT/calls`, a line of JSON for each call. `ROOT/options.json` has what it is to do
otherwise: `{"refuses": {"NodeStageVolume": "why"}, "can": [...], "most": 3, "node": "id"}`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

import podling.cri.grpc  # noqa: F401  it says how gRPC is to be loaded
from podling.kubelet.csi import csi_pb2 as node_pb
from podling.kubelet.csi import registration_pb2
from podling.process.mounts import bind_mount, mounts_under, unmount

controller_pb: Any = grpc.protos("csi_controller.proto")  # type: ignore[attr-defined, unused-ignore]

NODE, CONTROLLER, IDENTITY = "csi.v1.Node", "csi.v1.Controller", "csi.v1.Identity"
ALL = ("STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "GET_VOLUME_STATS")


class Refused(Exception):
    """The call is answered with `code`."""

    def __init__(self, code: grpc.StatusCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class CsiDriver:
    """`root` has its volumes and what it remembers; it may be served by one process after the other."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        (root / "volumes").mkdir(parents=True, exist_ok=True)
        self._writing = threading.Lock()
        self.status: SimpleQueue[tuple[bool, str]] = SimpleQueue()
        """What it was told of its registration."""
        self.versions = ["1.0.0"]
        self.kind = "CSIPlugin"

    # What tests say and ask

    @property
    def options(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.root / "options.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def set(self, **options: Any) -> None:
        fresh = self.root / "options.new"
        fresh.write_text(json.dumps({**self.options, **options}))
        fresh.rename(self.root / "options.json")

    def calls(self, method: str = "") -> list[dict[str, Any]]:
        """The requests that came, in their order."""
        try:
            lines = (self.root / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [one["request"] for one in found if method in ("", one["method"])]

    def methods(self, *wanted: str) -> list[str]:
        lines = (self.root / "calls").read_text().splitlines() if (self.root / "calls").exists() else []
        found = [json.loads(line)["method"] for line in lines]
        return [one for one in found if not wanted or one in wanted]

    # Identity and registration

    def GetPluginInfo(self, _: Any) -> Any:
        return controller_pb.GetPluginInfoResponse(name=self.name, vendor_version="1")

    def Probe(self, _: Any) -> Any:
        return controller_pb.ProbeResponse()

    def GetInfo(self, _: Any) -> Any:
        return registration_pb2.PluginInfo(
            type=self.kind,
            name=self.name,
            endpoint=str(self.root / "csi.sock"),
            supported_versions=self.versions,
        )

    def NotifyRegistrationStatus(self, request: Any) -> Any:
        self.status.put((request.plugin_registered, request.error))
        return registration_pb2.RegistrationStatusResponse()

    # Controller

    def CreateVolume(self, request: Any) -> Any:
        place = self.root / "volumes" / request.name
        size = request.capacity_range.required_bytes
        if any(one.HasField("block") for one in request.volume_capabilities):
            with place.with_suffix(".img").open("ab") as image:
                image.truncate(size)
        else:
            place.mkdir(exist_ok=True)
        context = dict(request.parameters)
        volume = controller_pb.Volume(volume_id=request.name, capacity_bytes=size, volume_context=context)
        return controller_pb.CreateVolumeResponse(volume=volume)

    def DeleteVolume(self, request: Any) -> Any:
        place = self.root / "volumes" / request.volume_id
        shutil.rmtree(place, ignore_errors=True)
        place.with_suffix(".img").unlink(missing_ok=True)
        return controller_pb.DeleteVolumeResponse()

    def ControllerPublishVolume(self, request: Any) -> Any:
        return controller_pb.ControllerPublishVolumeResponse(publish_context={"disk": request.volume_id})

    def ControllerUnpublishVolume(self, _: Any) -> Any:
        return controller_pb.ControllerUnpublishVolumeResponse()

    def ControllerExpandVolume(self, request: Any) -> Any:
        size = request.capacity_range.required_bytes
        return controller_pb.ControllerExpandVolumeResponse(capacity_bytes=size, node_expansion_required=True)

    # Node

    def NodeGetInfo(self, _: Any) -> Any:
        return node_pb.NodeGetInfoResponse(
            node_id=self.options.get("node", "node-one"),
            max_volumes_per_node=self.options.get("most", 0),
            accessible_topology=node_pb.Topology(segments=self.options.get("topology", {})),
        )

    def NodeGetCapabilities(self, _: Any) -> Any:
        kinds = node_pb.NodeServiceCapability.RPC.Type
        return node_pb.NodeGetCapabilitiesResponse(
            capabilities=[
                node_pb.NodeServiceCapability(rpc={"type": kinds.Value(name)})
                for name in self.options.get("can", ALL)
            ]
        )

    def NodeStageVolume(self, request: Any) -> Any:
        staging = Path(request.staging_target_path)
        if not staging.is_dir():
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"{staging} is no directory")
        if request.volume_capability.HasField("mount") and not mounts_under(staging):
            bind_mount(self._directory(request.volume_id), staging)
        return node_pb.NodeStageVolumeResponse()

    def NodeUnstageVolume(self, request: Any) -> Any:
        unmount(Path(request.staging_target_path))
        for device in self._devices(request.volume_id):
            subprocess.run(["losetup", "--detach", device], check=True)
        return node_pb.NodeUnstageVolumeResponse()

    def NodePublishVolume(self, request: Any) -> Any:
        target = Path(request.target_path)
        source: Path | str
        if request.volume_capability.HasField("block"):
            source = self._device(request.volume_id)
            target.touch()
        else:
            staged = Path(request.staging_target_path)
            source = staged if request.staging_target_path else self._directory(request.volume_id)
            if not target.exists():
                target.mkdir()
        if not mounts_under(target):
            bind_mount(source, target, read_only=request.readonly)
        return node_pb.NodePublishVolumeResponse()

    def NodeUnpublishVolume(self, request: Any) -> Any:
        target = Path(request.target_path)
        if self.options.get("leaves"):
            return node_pb.NodeUnpublishVolumeResponse()
        unmount(target)
        if target.is_dir():
            target.rmdir()
        else:
            target.unlink(missing_ok=True)
        if request.volume_id.startswith("csi-"):
            shutil.rmtree(self.root / "volumes" / request.volume_id, ignore_errors=True)
        return node_pb.NodeUnpublishVolumeResponse()

    def NodeGetVolumeStats(self, request: Any) -> Any:
        """In bytes and inodes: of 100 are 40 used; and what it is to say of the volume's condition."""
        if not Path(request.volume_path).exists():
            raise Refused(grpc.StatusCode.NOT_FOUND, f"{request.volume_path} is not there")
        usage = [
            node_pb.VolumeUsage(total=100, used=40, available=59, unit=unit)
            for unit in (node_pb.VolumeUsage.BYTES, node_pb.VolumeUsage.INODES)
        ]
        condition = node_pb.VolumeCondition(abnormal=bool(self.options.get("abnormal")))
        return node_pb.NodeGetVolumeStatsResponse(usage=usage, volume_condition=condition)

    def NodeExpandVolume(self, request: Any) -> Any:
        size = request.capacity_range.required_bytes
        return node_pb.NodeExpandVolumeResponse(capacity_bytes=size)

    def _directory(self, volume: str) -> Path:
        place = self.root / "volumes" / volume
        if volume.startswith("csi-"):
            # Of one pod: nobody has asked for it before.
            place.mkdir(exist_ok=True)
        if not place.is_dir():
            raise Refused(grpc.StatusCode.NOT_FOUND, f"no volume {volume}")
        return place

    def _image(self, volume: str) -> Path:
        return self.root / "volumes" / f"{volume}.img"

    def _devices(self, volume: str) -> list[str]:
        told = subprocess.run(
            ["losetup", "--noheadings", "--output", "NAME", "--associated", str(self._image(volume))],
            capture_output=True,
            text=True,
            check=False,
        )
        return [line.split(":")[0].strip() for line in told.stdout.splitlines() if line.strip()]

    def _device(self, volume: str) -> str:
        for device in self._devices(volume):
            return device
        made = subprocess.run(
            ["losetup", "--find", "--show", str(self._image(volume))],
            capture_output=True,
            text=True,
            check=True,
        )
        return made.stdout.strip()

    # Being served

    def _answering(self, method: str, answer: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def answered(request: Any, context: Any) -> Any:
            line = {"method": method, "request": MessageToDict(request, preserving_proto_field_name=True)}
            with self._writing, (self.root / "calls").open("a") as calls:
                calls.write(json.dumps(line) + "\n")
            try:
                if (why := self.options.get("refuses", {}).get(method)) is not None:
                    raise Refused(grpc.StatusCode.INTERNAL, why)
                return answer(request)
            except Refused as error:
                context.abort(error.code, str(error))

        return answered

    def _service(self, name: str, messages: Any, *methods: str) -> Any:
        handlers = {
            method: grpc.unary_unary_rpc_method_handler(
                self._answering(method, getattr(self, method)),
                request_deserializer=getattr(messages, request).FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for method, _, request in (one.partition(":") for one in methods)
            for request in (request or f"{method}Request",)
        }
        return grpc.method_handlers_generic_handler(name, handlers)

    @contextmanager
    def serving(self, registry: Path) -> Iterator[None]:
        """Serve while the block runs; registered in `registry`."""
        of_driver = [
            self._service(IDENTITY, controller_pb, "GetPluginInfo", "Probe"),
            self._service(
                CONTROLLER,
                controller_pb,
                "CreateVolume",
                "DeleteVolume",
                "ControllerPublishVolume",
                "ControllerUnpublishVolume",
                "ControllerExpandVolume",
            ),
            self._service(
                NODE,
                node_pb,
                "NodeGetInfo",
                "NodeGetCapabilities",
                "NodeStageVolume",
                "NodeUnstageVolume",
                "NodePublishVolume",
                "NodeUnpublishVolume",
                "NodeExpandVolume",
                "NodeGetVolumeStats",
            ),
        ]
        asks = self._service(
            "pluginregistration.Registration",
            registration_pb2,
            "GetInfo:InfoRequest",
            "NotifyRegistrationStatus:RegistrationStatus",
        )
        registry.mkdir(parents=True, exist_ok=True)
        endpoint, told = self.root / "csi.sock", registry / f"{self.name}-reg.sock"
        with ThreadPoolExecutor(8) as threads:
            servers = []
            for socket, services in ((endpoint, of_driver), (told, [asks])):
                socket.unlink(missing_ok=True)
                server = grpc.server(threads, handlers=services)
                server.add_insecure_port(f"unix://{socket}")
                server.start()
                servers.append(server)
            try:
                yield
            finally:
                for server in servers:
                    server.stop(None).wait()
                told.unlink(missing_ok=True)


if __name__ == "__main__":
    with CsiDriver(sys.argv[1], Path(sys.argv[2])).serving(Path(sys.argv[3])):
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        threading.Event().wait()
