"""Kubernetes' own kubelet on this machine, with a containerd of the tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from peer.server import running
from podling.machine.start import machine_address
from podling.process.mounts import unmount_under
from ports import free_port

if TYPE_CHECKING:
    from conftest import RealContainerd

HIERARCHIES = Path("/sys/fs/cgroup")
OWN = (Path("/var/lib/kubelet"), Path("/var/log/containers"))
"""Directories that the kubelet makes whatever it is told."""


@contextmanager
def kubelet(
    program: Path,
    containerd: RealContainerd,
    home: Path,
    ca: Path,
    node: str,
    flags: Mapping[str, Any],
    **config: Any,
) -> Iterator[None]:
    """While the block runs, with its files in `home`; it trusts the clients of `ca`."""
    address = machine_address()
    whole = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{containerd.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": containerd.cgroup_parent,
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "address": address,
        "port": free_port(),
        "healthzPort": 0,
        "authentication": {"x509": {"clientCAFile": str(ca)}},
        # The machine's own rules, files and space are not the test's.
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(home / "logs"),
        "volumePluginDir": str(home / "plugins"),
        "evictionHard": {"memory.available": "1Mi"},
        **config,
    }
    (home / "config.yaml").write_text(yaml.safe_dump(whole))
    told = {
        "config": home / "config.yaml",
        "cert-dir": home / "pki",
        "root-dir": home / "root",
        "hostname-override": node,
        "node-ip": address,
        **flags,
    }
    try:
        with running(
            [str(program), *(f"--{name}={value}" for name, value in told.items())], home / "kubelet.log"
        ):
            yield
    finally:
        unmount_under(home)


@contextmanager
def own_places(containerd: RealContainerd) -> Iterator[None]:
    """The kubelet's root in every hierarchy of cgroups; what it makes elsewhere goes at the end."""
    for hierarchy in (HIERARCHIES, *HIERARCHIES.glob("*/")):
        _make_cgroup(hierarchy, containerd.cgroup_parent.strip("/"))
    there = [path for path in OWN if path.exists()]
    try:
        yield
    finally:
        for path in OWN:
            if path not in there:
                shutil.rmtree(path, ignore_errors=True)


def _make_cgroup(hierarchy: Path, name: str) -> None:
    """Of version 1 or 2."""
    if not (hierarchy / "cgroup.procs").exists():
        return
    (hierarchy / name).mkdir()
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (hierarchy / file).exists():
            (hierarchy / name / file).write_text((hierarchy / file).read_text())
