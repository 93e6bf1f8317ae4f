"""Several machines on this one: each has network, mounts, processes and a name of its own, and a link to a
wire.

    machine ── eth0 ═ port ── bridge of its segment ── the wire, which leads on between segments

A machine that is killed takes all its processes with it at once, as one that loses its power; what it has in
its data directory stays.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

import leftovers
from podling.machine.instance import Instance
from podling.machine.network import has_ipv6
from untold import check_told

PODLING = [sys.executable, "-m", "podling"]
INIT = shutil.which("catatonit") or "catatonit"
SET_UP = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
hostname "$1"
exec "$2" -P
"""
Completed = subprocess.CompletedProcess[str]


def ended(*command: str, check: bool = True, timeout: float = 120, input: str = "") -> Completed:
    """When it must succeed and does not, its output is the failure's text."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, input=input)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Machine(msgspec.Struct):
    name: str
    address: str
    directory: Path
    init: int
    """The process that all others of the machine end with."""
    wire: Wire

    @property
    def instance(self) -> Instance:
        return Instance.at(self.directory / "data")

    def within(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self.init), "--net", "--mount", "--pid", "--uts", *command]

    def run(self, *command: str, check: bool = True, timeout: float = 120, input: str = "") -> Completed:
        return ended(*self.within(*command), check=check, timeout=timeout, input=input)

    def podling(self, *arguments: str, check: bool = True, timeout: float = 120) -> Completed:
        """`podling ARGUMENTS --data-dir ...`."""
        return self.run(
            *PODLING, *arguments, "--data-dir", str(self.instance.data_dir), check=check, timeout=timeout
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, while others act."""
        command = self.within(*PODLING, *arguments, "--data-dir", str(self.instance.data_dir))
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def kubectl(self, *arguments: str, check: bool = True, timeout: float = 90, input: str = "") -> Completed:
        """With this machine's administrator."""
        program = shutil.which("kubectl") or str(Path(sys.executable).parent / "kubectl")
        command = (program, "--kubeconfig", str(self.instance.kubeconfig), *arguments)
        return self.run(*command, check=check, timeout=timeout, input=input)

    def stop(self) -> None:
        """End the process of podling alone; returns once it has ended."""
        pid = self.run("cat", str(self.instance.lock_file)).stdout
        self.run("kill", pid)
        while self.run("kill", "-0", pid, check=False).returncode == 0:
            pass

    def cut(self) -> None:
        """Take it off the wire."""
        self.wire.run("ip", "link", "set", self.name, "down")

    def mend(self) -> None:
        self.wire.run("ip", "link", "set", self.name, "up")

    def kill(self) -> None:
        """At once, with everything that it runs."""
        os.kill(self.init, signal.SIGKILL)


class Wire:
    """Segments of Ethernet, and a router between them."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory, self._stack = directory, stack
        self._segments: dict[int, int] = {}
        """Segment → how many machines it has."""
        self.machines: list[Machine] = []
        self._init = self._hold("wire")
        self.run("ip", "link", "set", "lo", "up")
        self.run("sysctl", "-qw", "net.ipv4.ip_forward=1")

    def within(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self._init), "--net", *command]

    def run(self, *command: str) -> str:
        return ended(*self.within(*command)).stdout

    def machine(self, name: str, segment: int = 1) -> Machine:
        """One more, with addresses of the segment: 10.201.SEGMENT.N, and fd00:201:SEGMENT::N where there is
        IPv6."""
        bridge = f"segment{segment}"
        if segment not in self._segments:
            # An address of its own: otherwise it has that of a port, and another once that is gone.
            mac = f"02:00:00:00:00:{segment:02x}"
            self.run("ip", "link", "add", bridge, "address", mac, "type", "bridge")
            self.run("ip", "address", "add", f"10.201.{segment}.1/24", "dev", bridge)
            if has_ipv6():
                self.run("ip", "address", "add", f"fd00:201:{segment}::1/64", "dev", bridge, "nodad")
            self.run("ip", "link", "set", bridge, "up")
        self._segments[segment] = number = self._segments.get(segment, 1) + 1
        machine = Machine(name, f"10.201.{segment}.{number}", self._directory / name, 0, self)
        self.machines.append(machine)
        self.start(machine)
        return machine

    def start(self, machine: Machine) -> None:
        """Also once more, after it was killed."""
        _, _, segment, number = machine.address.split(".")
        machine.directory.mkdir(exist_ok=True)
        machine.init = self._hold(machine.name)
        port = ("ip", "link", "add", machine.name, "type", "veth", "peer", "name", "eth0", "netns")
        self.run(*port, str(machine.init))
        self.run("ip", "link", "set", machine.name, "master", f"segment{segment}")
        self.run("ip", "link", "set", machine.name, "up")
        machine.run("ip", "link", "set", "lo", "up")
        machine.run("ip", "address", "add", f"{machine.address}/24", "dev", "eth0")
        machine.run("ip", "link", "set", "eth0", "up")
        machine.run("ip", "route", "add", "default", "via", f"10.201.{segment}.1")
        if has_ipv6():
            own = f"fd00:201:{segment}::{number}/64"
            machine.run("ip", "address", "add", own, "dev", "eth0", "nodad")
            machine.run("ip", "route", "add", "default", "via", f"fd00:201:{segment}::1")

    def _hold(self, name: str) -> int:
        """The process that keeps the namespaces of a machine, as this machine numbers it."""
        unshare = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        log = self._stack.enter_context((self._directory / f"{name}.log").open("ab"))
        holder = subprocess.Popen([*unshare, "sh", "-c", SET_UP, "sh", name, INIT], stdout=log, stderr=log)
        self._stack.callback(_end, holder)
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        while True:
            assert holder.poll() is None, (self._directory / f"{name}.log").read_text()
            # It has set all up once it has become the init.
            for child in children.read_text().split():
                if Path(f"/proc/{child}/cmdline").read_bytes().startswith(INIT.encode()):
                    return int(child)


def _end(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait()


@contextmanager
def wired(directory: Path) -> Iterator[Wire]:
    """All machines end with the block, and nothing of them stays but their directories."""
    machines: list[Machine] = []
    try:
        with ExitStack() as stack:
            wire = Wire(directory, stack)
            machines = wire.machines
            yield wire
            for machine in machines:
                machine.podling("down", check=False)
        for machine in machines:
            check_told(machine.instance.log_file)
    finally:
        for machine in machines:
            # What was killed has left them; no process is in one any more.
            leftovers.remove_cgroups(machine.instance.cgroup.lstrip("/"))
