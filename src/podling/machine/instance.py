"""The paths and names of one podling on a machine that it may share with others.

All follow from the data directory: two podlings with different data directories have different identities,
and so different run directories, bridges, cgroups and runtime sockets. The pod subnet, the range of the
services' addresses and the ports do not follow from a name; they are chosen once and kept in `instance.json`.
Subnet and range are claimed under `/run`, so that no two podlings use one.
"""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

LAYOUT_VERSION = 1
DEFAULT_DATA_DIR = Path("/var/lib/podling")
DEFAULT_NODE_DIR = Path("/var/lib/podling-kubelet")
DEFAULT_PORT = 6443
RUN_ROOT = Path("/run/podling")
ENDED = ("Z", "X")
"""The states of a process that its parent has not heard of yet."""
PASSABLE = 0o711
"""The mode of a directory that only its owner may list, and others may pass through."""
SERVICE_RANGES = [f"10.{n}.0.0/16" for n in range(96, 224)]
SUBNETS = [f"10.{64 + n // 256}.{n % 256}.0/24" for n in range(1024)]


class LayoutError(Exception):
    """The data directory was written by another version of podling."""


class Choices(msgspec.Struct):
    """What the first start chose and every later one uses."""

    layout: int
    port: int
    subnet: str
    """The pods' subnet; empty until a node has run here."""
    service_range: str = ""
    """The services' addresses; empty until an API server has run here."""


class Instance(msgspec.Struct, frozen=True):
    """Paths and names of the podling whose data directory is `data_dir`."""

    data_dir: Path

    @classmethod
    def at(cls, data_dir: Path) -> Instance:
        return cls(data_dir.resolve())

    @property
    def identity(self) -> str:
        """Eight hex digits that identify this podling on the machine."""
        return hashlib.sha256(str(self.data_dir).encode()).hexdigest()[:8]

    @property
    def run_dir(self) -> Path:
        """The directory of sockets and locks. It is gone after a reboot, and short, because a socket's path
        has at most 107 bytes."""
        return RUN_ROOT / self.identity

    @property
    def bridge(self) -> str:
        """The table of the pods' network, and in older podlings their bridge: at most 15 characters."""
        return f"podling{self.identity}"

    @property
    def tunnel(self) -> str:
        """The link to nodes that are not on the same one."""
        return f"vxlan{self.identity}"

    @property
    def joined_kubeconfig(self) -> Path:
        """How the node of another cluster reaches it, once it has joined."""
        return self.data_dir / "kubelet.conf"

    @property
    def services_table(self) -> str:
        """The table of the service proxy."""
        return f"{self.bridge}-services"

    @property
    def policies_table(self) -> str:
        """The table of network policies."""
        return f"{self.bridge}-policies"

    @property
    def policies_socket(self) -> Path:
        """Where the kubelet asks whether network policies hold for a pod."""
        return self.run_dir / "policies"

    @property
    def cgroup(self) -> str:
        return f"/podling-{self.identity}"

    def have_data_dir(self) -> None:
        """Make the data directory, or correct its mode: containers' users pass through it and must not list
        it. One that everybody may write to (/tmp) is not podling's alone; its mode is left as it is."""
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=PASSABLE)
        mode = stat.S_IMODE(self.data_dir.stat().st_mode)
        if mode != PASSABLE and not mode & stat.S_ISVTX:
            self.data_dir.chmod(PASSABLE)

    @property
    def database(self) -> Path:
        return self.data_dir / "state.db"

    @property
    def etcd_cluster(self) -> Path:
        """The uid of the cluster that was served from an etcd."""
        return self.data_dir / "etcd-cluster"

    @property
    def shared_file(self) -> Path:
        """Where objects are, and what all API servers of the cluster have alike, if they share an etcd."""
        return self.data_dir / "shared.json"

    @property
    def restoring_dir(self) -> Path:
        """The content of a backup while it is checked; nothing uses it."""
        return self.data_dir / "restoring"

    @property
    def restored_dir(self) -> Path:
        """The checked content of a backup, to be moved into the data directory."""
        return self.data_dir / "restored"

    @property
    def pki_dir(self) -> Path:
        return self.data_dir / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.conf"

    @property
    def log_file(self) -> Path:
        return self.data_dir / "podling.log"

    @property
    def audit_log(self) -> Path:
        return self.data_dir / "audit.log"

    @property
    def kubelet_dir(self) -> Path:
        return self.data_dir / "kubelet"

    @property
    def pod_logs_dir(self) -> Path:
        return self.data_dir / "logs" / "pods"

    @property
    def volumes_dir(self) -> Path:
        """The directories that are volumes: what users have written, and kept when podling is set up anew."""
        return self.data_dir / "volumes"

    @property
    def cni_dir(self) -> Path:
        return self.data_dir / "cni"

    @property
    def containerd_dir(self) -> Path:
        return self.data_dir / "containerd"

    @property
    def lock_file(self) -> Path:
        """The running podling holds a lock on it; it contains the process id."""
        return self.run_dir / "lock"

    def running(self) -> int | None:
        """The process id of the podling that runs here, None when none does. Raises PermissionError for users
        who may not know."""
        with suppress(FileNotFoundError), open(self.lock_file) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _holder(lock)
        return None

    def lock(self) -> IO[str] | None:
        """Lock this instance until the returned file is closed or the process ends; None when another process
        holds the lock."""
        while True:
            self.run_dir.mkdir(parents=True, exist_ok=True)
            try:
                self.run_dir.chmod(PASSABLE)
                # Whoever can read a file can lock it, and would keep podling from starting.
                descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
            except FileNotFoundError:
                continue
            os.fchmod(descriptor, 0o600)
            lock = open(descriptor, "r+")  # noqa: SIM115 - it stays open as long as the lock is held
            try:
                # No child has this one, so nobody else waits below while podling runs.
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # One that was killed while it started a program left to it, until its exec, what it had open:
                # the lock, and the ports it listened on (docs/decisions/142).
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if _holder(lock) is None else fcntl.LOCK_NB))
            except BlockingIOError:
                lock.close()
                return None
            # `podling down` may have removed it since: then others lock another file.
            if os.fstat(descriptor).st_nlink > 0:
                break
            lock.close()
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        return lock

    @property
    def choices_file(self) -> Path:
        return self.data_dir / "instance.json"

    def choices(self) -> Choices | None:
        """The choices of an earlier start, None before the first. Raises LayoutError."""
        if not self.choices_file.exists():
            return None
        try:
            kept = msgspec.json.decode(self.choices_file.read_bytes(), type=Choices)
        except msgspec.DecodeError as error:
            raise LayoutError(
                f"{self.choices_file} is damaged ({error}): remove it, and port and subnet are chosen anew"
            ) from error
        if kept.layout != LAYOUT_VERSION:
            raise LayoutError(
                f"{self.data_dir} has layout {kept.layout}, this podling writes layout {LAYOUT_VERSION}: "
                "use the podling that made it, or another --data-dir"
            )
        return kept

    def keep(self, choices: Choices) -> None:
        partial = self.choices_file.with_suffix(".new")
        with partial.open("wb") as file:
            file.write(msgspec.json.encode(choices) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.choices_file)

    def claim_subnet(self, preferred: str | None, taken: Callable[[str], bool]) -> str:
        """A pod subnet that no other podling has and for which `taken` (the machine's routes) is false.

        The claim lasts until `release_subnet` or a reboot, so containers that outlive their podling keep
        their subnet.
        """
        start = int(self.identity, 16) % len(SUBNETS)
        first = [] if preferred is None else [preferred]
        return self._claim([*first, *SUBNETS[start:], *SUBNETS[:start]], taken)

    def claim_range(self, kept: str | None, taken: Callable[[str], bool]) -> str:
        """As `claim_subnet`, for the addresses of services. What was `kept`, of one family or two, is had
        even if another podling has it, too."""
        if kept is not None:
            for one in kept.split(","):
                with suppress(OSError):
                    self._claim([one], lambda _: False)
            return kept
        start = int(self.identity, 16) % len(SERVICE_RANGES)
        others = self._claims_of_others()

        def unfit(candidate: str) -> bool:
            return any(overlap(candidate, one) for one in others) or taken(candidate)

        return self._claim([*SERVICE_RANGES[start:], *SERVICE_RANGES[:start]], unfit)

    def _claims_of_others(self) -> list[str]:
        others = []
        for claim in (RUN_ROOT / "subnets").glob("*"):
            # One may be released just now.
            with suppress(FileNotFoundError):
                if claim.read_text() != self.identity:
                    others.append(claim.name.replace("_", "/"))
        return others

    def _claim(self, candidates: Iterable[str], taken: Callable[[str], bool]) -> str:
        claims = RUN_ROOT / "subnets"
        claims.mkdir(parents=True, exist_ok=True)
        for subnet in candidates:
            claim = claims / subnet.replace("/", "_")
            try:
                with open(os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w") as file:
                    file.write(self.identity)
            except FileExistsError:
                if claim.read_text() == self.identity:
                    return subnet
                continue
            if not taken(subnet):
                return subnet
            claim.unlink()
        raise OSError("every subnet podling could take is in use on this machine")

    def release_subnet(self) -> None:
        for claim in (RUN_ROOT / "subnets").glob("*"):
            if claim.read_text() == self.identity:
                claim.unlink()


def _holder(lock: IO[str]) -> int | None:
    """The process that wrote its id when it took this lock, None when it has ended."""
    lock.seek(0)
    pid = int(lock.read() or 0)
    with suppress(OSError):
        # The state comes after the name, which is in brackets and may have any in it.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return pid if state not in ENDED else None
    return None


def overlap(one: str, other: str) -> bool:
    first, second = ipaddress.ip_network(one), ipaddress.ip_network(other)
    return first.version == second.version and first.overlaps(second)


def routed(subnet: str, route_table: str, own_interface: str, *, or_equal: bool = True) -> bool:
    """Whether `route_table` (the text of /proc/net/route) routes any of `subnet` to an interface other than
    `own_interface`; without `or_equal`, a route of exactly `subnet` does not count."""
    wanted = ipaddress.ip_network(subnet)
    for line in route_table.splitlines()[1:]:
        interface, destination, _, _, _, _, _, mask, *_ = line.split()
        network = ipaddress.ip_network(f"{_little_endian(destination)}/{_little_endian(mask)}", strict=False)
        # The default route covers everything and says nothing about who uses the subnet.
        if not or_equal and network == wanted:
            continue
        if interface != own_interface and network.prefixlen > 0 and network.overlaps(wanted):
            return True
    return False


def _little_endian(field: str) -> str:
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(field)))
