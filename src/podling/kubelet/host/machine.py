"""Facts about the machine for the Node object, read from the kernel's files when the kubelet starts."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import msgspec

from podling.kubelet.host.usage import meminfo_bytes

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
    app_armor: bool = False
    """The kernel enforces AppArmor."""


def this_machine(root_dir: Path) -> Machine:
    """Read now; a fact whose file is missing is empty or 0. Raises OSError without `root_dir`."""
    memory = meminfo_bytes(_read("/proc/meminfo"))
    disk = os.statvfs(root_dir)
    machine_id = _read("/etc/machine-id") or _read("/var/lib/dbus/machine-id")
    release = dict(line.partition("=")[::2] for line in _read("/etc/os-release").splitlines())
    huge_pages = {}
    for entry in sorted(_HUGE_PAGES.glob("hugepages-*kB")):
        size = int(entry.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        huge_pages[size] = size * int((entry / "nr_hugepages").read_text())
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
        os_image=release.get("PRETTY_NAME", "Linux").strip('"'),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
        huge_pages=huge_pages,
        app_armor=_read("/sys/module/apparmor/parameters/enabled").startswith("Y"),
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
