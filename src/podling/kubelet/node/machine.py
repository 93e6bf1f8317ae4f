"""What the kubelet reports about the machine it runs on, read once from the kernel's files."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


@dataclass(frozen=True, slots=True)
class Machine:
    """Sizes are bytes; `disk` is the file system the kubelet's root directory is on."""

    hostname: str
    cpus: int
    memory: int
    swap: int
    disk: int
    machine_id: str
    system_uuid: str
    boot_id: str
    kernel_version: str
    os_image: str
    architecture: str


def this_machine(root_dir: Path) -> Machine:
    memory = _meminfo(_read("/proc/meminfo"))
    disk = os.statvfs(root_dir)
    machine_id = _read("/etc/machine-id") or _read("/var/lib/dbus/machine-id")
    return Machine(
        hostname=platform.node().lower(),
        cpus=os.cpu_count() or 1,
        memory=memory.get("MemTotal", 0),
        swap=memory.get("SwapTotal", 0),
        disk=disk.f_blocks * disk.f_frsize,
        machine_id=machine_id,
        system_uuid=_read("/sys/class/dmi/id/product_uuid") or machine_id,
        boot_id=_read("/proc/sys/kernel/random/boot_id"),
        kernel_version=platform.release(),
        os_image=_os_image(_read("/etc/os-release")),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    rows = (line.split() for line in text.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}


def _os_image(release: str) -> str:
    for line in release.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"')
    return "Linux"
