"""What every start asks of the machine (checks, a listening socket, the lock), and the errors by which it is
refused.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from podling.machine import doctor
from podling.machine.instance import Instance

DISK_FAULTS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM))


class StartError(Exception):
    """podling cannot start or continue. The message is for the user and says what to do; `exit_code` is the
    command's."""

    exit_code = 1


class DamagedError(StartError):
    """Something in the data directory is lost or was changed; nothing was done about it."""

    exit_code = 4


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """For code that writes in `directory`: raises StartError for a full or read-only disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FAULTS:
            raise
        why = os.strerror(error.errno)
        raise StartError(f"cannot write {error.filename or f'in {directory}'}: {why}") from error


def check_machine() -> None:
    """Raises StartError with everything that is missing, and how to install it."""
    findings = doctor.examine({})
    failed = [finding for finding in findings if finding.verdict is doctor.Verdict.FAILED]
    if not failed:
        return
    lines = [f"  {finding.what}: {finding.found} ({finding.remedy})" for finding in failed]
    if packages := doctor.missing_packages(findings):
        lines.append(f"Install what is missing with: apt-get install {' '.join(packages)}")
    raise StartError("\n".join(["this machine lacks what podling needs:", *lines]))


def machine_address() -> str:
    """The address from which this machine would reach others; loopback when it has no network."""
    return _address_to(socket.AF_INET, "192.0.2.1") or "127.0.0.1"


def machine_address6() -> str:
    """As `machine_address`, of IPv6; empty when it reaches nobody so."""
    return _address_to(socket.AF_INET6, "2001:db8::1")


def _address_to(family: socket.AddressFamily, other: str) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Connecting a datagram socket only asks the routing table; nothing is sent.
            probe.connect((other, 9))
            address: str = probe.getsockname()[0]
            return address
    except OSError:
        return ""


def listener(address: str, *ports: int) -> socket.socket:
    """A socket that listens on the first free one of `ports`; 0 is any. It listens at once, because a port
    that was only seen to be free may be taken a moment later. Raises StartError."""
    for port in ports:
        listening = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address, port))
            listening.listen()
        except OSError as error:
            listening.close()
            fault = error
            continue
        return listening
    raise StartError(f"cannot listen on {address}, port {ports[-1]}: {fault}")


def is_taken(protocol: str, address: str, port: int) -> bool:
    """Whether a process of this machine has the port of a protocol (`TCP`, `UDP`, `SCTP`) at an address."""
    kind = socket.SOCK_DGRAM if protocol == "UDP" else socket.SOCK_STREAM
    number = socket.IPPROTO_SCTP if protocol == "SCTP" else 0
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind, number) as probe:
            if kind == socket.SOCK_STREAM:
                # Connections that have ended do not keep a port.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError as error:
        # Of what this machine does not have, or may not ask for, nothing is known.
        return error.errno == errno.EADDRINUSE
    return False


def hold(instance: Instance) -> IO[str]:
    """Lock a data directory, and finish a restore that was interrupted. Raises StartError when another
    process uses it."""
    with writing(instance.run_dir):
        lock = instance.lock()
    if lock is None:
        # It may have begun just now, and not have said which process it is.
        process = f" (process {pid})" if (pid := instance.running()) else ""
        raise StartError(
            f"podling is already running for {instance.data_dir}{process}: "
            "stop it with `podling down`, or start another with another --data-dir and --port"
        )
    try:
        with writing(instance.data_dir):
            finish_restore(instance)
    except BaseException:
        lock.close()
        raise
    return lock


def finish_restore(instance: Instance) -> None:
    """Move the content of a backup into place. If it is killed, the next start does the rest."""
    restored = instance.restored_dir
    shutil.rmtree(instance.restoring_dir, ignore_errors=True)
    if not restored.exists():
        return
    for log in ("state.db-wal", "state.db-shm"):
        # Of what was there: it would be read into what is put in its place.
        (instance.data_dir / log).unlink(missing_ok=True)
    if (restored / "pki").exists():
        shutil.rmtree(instance.pki_dir, ignore_errors=True)
        (restored / "pki").rename(instance.pki_dir)
    for file in sorted(restored.iterdir()):
        file.replace(instance.data_dir / file.name)
    restored.rmdir()
