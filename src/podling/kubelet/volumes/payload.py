"""What the volumes made of files have in common: files named by relative paths, and the error that stops a
mount.
"""

from __future__ import annotations

import msgspec


class VolumeError(Exception):
    """A volume cannot be set up now. The message is what the FailedMount event says; trying again later may
    help."""


class File(msgspec.Struct, frozen=True):
    """`owner` is the user it belongs to, where that is not root."""

    data: bytes
    mode: int
    owner: int | None = None


Payload = dict[str, File]
