"""Facts about the machine for the Node object, read from the kernel's files when the kubelet starts."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path

import msgspec

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_HUGE_PAGES = Path("/sys/kernel/mm/hugepages")


class Machine(msgspec.Struct, frozen=True):
    """The machine, for the Node's capacity and nodeInfo. Sizes are bytes."""

    hostname: str
    cpus: int
    memory: int
    swap: int
    disk: int
    """Of the file system that the kubelet's root directory is on."""
    machine_id: str
    system_uuid: str
    boot_id: str
    kernel_version: str
    os_image: str
    architecture: str
    huge_pages: Mapping[int, int] = msgspec.field(default_factory=dict)
    """Page size → bytes reserved in pages of this size."""


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
        huge_pages=_huge_pages(_HUGE_PAGES),
    )


def _huge_pages(directory: Path) -> dict[int, int]:
    """From directories named `hugepages-2048kB`."""
    found = {}
    for entry in sorted(directory.glob("hugepages-*kB")):
        size = int(entry.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        found[size] = size * int((entry / "nr_hugepages").read_text())
    return found


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


@functools.cache
def app_armor_enabled() -> bool:
    try:
        return Path("/sys/module/apparmor/parameters/enabled").read_text().startswith("Y")
    except OSError:
        return False
