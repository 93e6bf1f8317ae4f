"""The files that `fileKeyRef` takes variables from (KEP-3721): their parser, and reading them from the pod's
volumes when a container is created. The container need not mount the volume.

The format is a subset of the shell's, which a shell reads with the same result:

    NAME='value'          the text between the quotes, which may span lines
    NAME='value' # why    a comment after a value; lines that begin with # are comments, too
    NAME= 'value'         empty: to a shell this is a command with an empty variable

Parsing is pure: lines in, a value out. It stops at the wanted name, so errors after it are not found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from podling.kubelet.cri_config.environment import FileKey, FoundInFile
from podling.kubelet.volumes.confined_path import opened_file
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import MountedVolume

log = logging.getLogger(__name__)

LONGEST_LINE = 64 * 1024 - 1
"""In bytes, without the line end; the limit of Kubernetes' parser."""
LONGEST_FILE = 1024 * 1024
"""In bytes, read until the key is found: a container may write without end, and the kubelet would read it."""
LONGEST_VALUE = 128 * 1024
"""In bytes: Linux passes no longer string to a program (MAX_ARG_STRLEN)."""
_BLANK = b" \t"


class EnvFileError(Exception):
    """A file that cannot be parsed. The message is for the kubelet's log."""


class Lines(Protocol):
    """A file of bytes, open for reading."""

    def readline(self, limit: int, /) -> bytes: ...


def read_env_files(
    keys: Sequence[FileKey], volumes: Mapping[str, MountedVolume]
) -> dict[FileKey, FoundInFile]:
    """The value of each key whose volume exists. Blocking."""
    found = {}
    for key in keys:
        if (volume := volumes.get(key.volume)) is None:
            continue
        path = str(volume.path / key.path.lstrip("/"))
        value: str | None = None
        try:
            with opened_file(volume.path, key.path) as file:
                value = value_in(lines_of(file), key.name)
        except (EnvFileError, VolumeError, OSError) as error:
            log.warning("cannot take variables from %s: %s", path, error)
        found[key] = FoundInFile(path, value)
    return found


def lines_of(file: Lines) -> Iterator[bytes]:
    """Without their ends, `\\n` or `\\r\\n`. Raises EnvFileError for a line, or a file, that is too long."""
    read = 0
    while line := file.readline(LONGEST_LINE + 1):
        read += len(line)
        if read > LONGEST_FILE:
            raise EnvFileError(f"there is more to read than {LONGEST_FILE} bytes")
        if not line.endswith(b"\n") and len(line) > LONGEST_LINE:
            raise EnvFileError(f"a line is longer than {LONGEST_LINE} bytes")
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def value_in(lines: Iterable[bytes], key: str) -> str:
    """The value of `key`, "" if the file does not have it. Raises EnvFileError."""
    wanted = key.encode()
    numbered = enumerate(lines, 1)
    for number, line in numbered:
        text = line.lstrip(_BLANK)
        if not text or text.startswith(b"#"):
            continue
        name, equals, rest = text.partition(b"=")
        if not equals:
            raise _invalid(number, "missing '='")
        if not name:
            raise _invalid(number, "empty variable name")
        if name != name.rstrip(_BLANK):
            raise _invalid(number, "whitespace before '=' is not allowed")
        value = _value(rest, number, numbered, kept=name == wanted)
        if name == wanted:
            return value.decode(errors="replace")
    return ""


def _value(rest: bytes, number: int, following: Iterator[tuple[int, bytes]], *, kept: bool) -> bytes:
    """What begins with `rest` and goes on in the lines `following`; empty unless it is to be `kept`."""
    if rest.startswith((b" ", b"\t")):
        return b""
    if not rest.startswith(b"'"):
        raise _invalid(number, "value must be enclosed in single quotes")
    value = bytearray()
    part, quote, after = rest[1:].partition(b"'")
    at = number
    while not quote:
        if kept:
            value += part + b"\n"
        if len(value) > LONGEST_VALUE:
            raise _invalid(number, f"value is longer than {LONGEST_VALUE} bytes")
        at, line = next(following, (0, None))
        if line is None:
            raise EnvFileError(
                f"invalid environment variable format starting at line {number}: unclosed single quote"
            )
        part, quote, after = line.partition(b"'")
    comment = after.lstrip(_BLANK)
    if comment and not comment.startswith(b"#"):
        raise _invalid(at, "unexpected content after closing quote")
    return bytes(value + part) if kept else b""


def _invalid(number: int, why: str) -> EnvFileError:
    return EnvFileError(f"invalid environment variable format at line {number}: {why}")
