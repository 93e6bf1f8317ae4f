"""What is on disk of CSI volumes: where they are staged and published, and the records of both.

    <pod>/volumes/kubernetes.io~csi/<volume>/vol_data.json   written before anything is asked of the driver
    <pod>/volumes/kubernetes.io~csi/<volume>/mount           the volume in the pod
    <plugins>/kubernetes.io/csi/<driver>/<hash>/vol_data.json
    <plugins>/kubernetes.io/csi/<driver>/<hash>/globalmount  where it is staged once for the node
    <plugins>/kubernetes.io/csi/<driver>/<hash>/users/<uid>  the pods that have it
    <plugins>/kubernetes.io/csi/<driver>/<hash>/publish/<uid>  a block device in a pod

Names and content of `vol_data.json` are Kubernetes'. The record of a pod is removed last, so whatever a kill
cuts short is done again from it. Blocking: run it off the event loop.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from podling.kubelet.files import tree
from podling.kubelet.pod.directories import PodDirectory, replace_file
from podling.kubelet.volumes.csi import PERSISTENT, CsiVolume
from podling.model.rules.attachments import unique_name

PLUGIN = "csi"
RECORD = "vol_data.json"
_BLOCK = "Block"


class CsiRecord(msgspec.Struct, frozen=True):
    """A volume that a pod has, or may have."""

    name: str = msgspec.field(name="specVolID")
    driver: str = msgspec.field(name="driverName")
    handle: str = msgspec.field(name="volumeHandle")
    node: str = msgspec.field(name="nodeName", default="")
    attachment: str = msgspec.field(name="attachmentID", default="")
    """Empty: it is not attached."""
    lifecycle: str = msgspec.field(name="volumeLifecycleMode", default=PERSISTENT)
    mode: str = msgspec.field(name="volumeMode", default="")

    @property
    def unique_name(self) -> str:
        return unique_name(self.driver, self.handle)


class CsiPlaces:
    """The places of one volume in one pod. Methods raise OSError."""

    def __init__(self, csi_dir: Path, directory: PodDirectory, record: CsiRecord) -> None:
        uid = directory.path.name
        self.record = record
        self._in_pod = directory.volume(PLUGIN, record.name)
        hashed = hashlib.sha256(record.handle.encode()).hexdigest()
        self._staged = csi_dir / record.driver / hashed
        self.staging = self._staged / "globalmount"
        self._user = self._staged / "users" / uid
        is_block = record.mode == _BLOCK
        self.target = self._staged / "publish" / uid if is_block else self._in_pod / "mount"

    def record_pod(self) -> None:
        """Before anything is asked of the driver."""
        tree.make_directories(self._in_pod, 0o750)
        replace_file(self._in_pod / RECORD, msgspec.json.encode(self.record))
        tree.make_directories(self.target.parent, 0o750)

    def record_stage(self) -> None:
        tree.make_directories(self._user.parent, 0o750)
        self._user.touch()
        # A place where something is mounted already may be of any mode.
        tree.make_directories(self.staging, 0o750)
        told = {"driverName": self.record.driver, "volumeHandle": self.record.handle}
        replace_file(self._staged / RECORD, json.dumps(told, separators=(",", ":")).encode())

    def unpublished(self) -> bool:
        """The driver has taken it from the pod. Whether no other pod has it staged."""
        _remove_target(self.target)
        self._user.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            return not os.listdir(self._user.parent)
        return False

    def unstaged(self) -> None:
        tree.remove(self._staged)

    def forget_pod(self) -> None:
        """Last of all."""
        tree.remove(self._in_pod)


def record_of(volume: CsiVolume, node: str, attachment: str) -> CsiRecord:
    return CsiRecord(
        name=volume.name,
        driver=volume.driver,
        handle=volume.handle,
        node=node,
        attachment=attachment,
        lifecycle=volume.lifecycle,
        mode=_BLOCK if volume.block else "",
    )


def records_of(directory: PodDirectory) -> Iterator[CsiRecord]:
    """What the pod may have of CSI volumes. Raises OSError."""
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(directory.volume(PLUGIN, ""))):
            # A record is renamed into its place: it is there as a whole or not, and then nothing was asked.
            with suppress(FileNotFoundError, NotADirectoryError):
                yield msgspec.json.decode((Path(entry.path) / RECORD).read_bytes(), type=CsiRecord)


def _remove_target(target: Path) -> None:
    """Raises OSError, with EBUSY if the driver has left it mounted."""
    if target.is_dir() and not target.is_symlink():
        tree.remove(target)
    else:
        target.unlink(missing_ok=True)
