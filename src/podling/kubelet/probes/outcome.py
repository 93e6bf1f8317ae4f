"""What asking once can bring: an answer, good or bad, or nothing that says anything of the container."""

from __future__ import annotations

import os
import socket
from typing import NamedTuple


class Outcome(NamedTuple):
    """`message` says why it is a failure; of a success, what is odd about it (then a warning)."""

    success: bool
    message: str = ""


class ProbeError(Exception):
    """The question could not be asked: that is no failure of the container's."""


def dial_failure(host: str, port: int, error: OSError) -> str:
    """A connection that could not be made, as events word it."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    why = "i/o timeout" if isinstance(error, TimeoutError) else f"connect: {_words(error)}"
    return f"dial tcp {address(host, port)}: {why}"


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _words(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
