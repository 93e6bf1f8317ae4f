"""What a CSI driver is told of a volume, and how it says that something failed; without gRPC."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class DriverError(Exception):
    """A driver refused or did not answer. The message is gRPC's as Go writes it."""


class Access(msgspec.Struct, frozen=True):
    """How a volume is used (VolumeCapability)."""

    mode: str
    """SINGLE_NODE_WRITER, MULTI_NODE_READER_ONLY and so on."""
    block: bool = False
    fs_type: str = ""
    mount_flags: tuple[str, ...] = ()
    group: str = ""
    """The fsGroup, of a driver that mounts with it."""


class Staged(msgspec.Struct, frozen=True):
    """A volume of a driver, as stage and publish name it."""

    volume: str
    """The driver's id of it."""
    staging: str
    """Empty if the driver does not stage."""
    access: Access
    attached: Mapping[str, str]
    """What the driver's controller answered when it attached the volume (publish_context)."""
