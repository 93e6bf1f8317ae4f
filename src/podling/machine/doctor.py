"""The checks of what podling needs of a machine: for `podling doctor`, and the first step of `podling up`.

Each check looks at one thing. Its finding says what it found and, if that is not enough, what to do about it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator, Set
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from podling.process.mounts import read_mounts

CNI_BIN_DIRS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))

BINARIES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "iptables": "iptables",
    "ip": "iproute2",
    "catatonit": "catatonit",
}
"""Program → the Debian and Ubuntu package that has it."""

CNI_PLUGINS = ("ptp", "host-local", "loopback", "portmap", "bandwidth", "tuning")
CNI_PACKAGE = "containernetworking-plugins"

CAPABILITIES = {12: "CAP_NET_ADMIN", 18: "CAP_SYS_CHROOT", 19: "CAP_SYS_PTRACE", 21: "CAP_SYS_ADMIN"}
CAP_SYS_RESOURCE = 24

DROPPED = {"forward": "forwarding", "input": "cluster DNS and API server, for pods"}
"""By hook, what does not work where its filter drops the packets of pods."""
DROPPED_REMEDIES = {
    "forward": (
        "ufw route allow from {0}; ufw route allow to {0}",
        "iptables -I FORWARD -s {0} -j ACCEPT; iptables -I FORWARD -d {0} -j ACCEPT",
    ),
    "input": ("ufw allow from {0}", "iptables -I INPUT -s {0} -j ACCEPT"),
}
"""By hook, to be done where the filter is ufw's, or anybody else's."""

OLDEST_KERNEL = (4, 19)


class Verdict(Enum):
    """A WARNING costs a feature, FAILED prevents a start."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """`what` was checked, `found` is its state, `remedy` says what to do (empty when nothing is wrong),
    `package` is the distribution's package that would help."""

    what: str
    verdict: Verdict
    found: str
    remedy: str = ""
    package: str = ""


def examine(ports: dict[str, int]) -> list[Finding]:
    """Every check of this machine. `ports` are the ports that must be free, by what needs them."""
    findings = [
        user(os.geteuid()),
        kernel(platform.release()),
        overlay(Path("/proc/filesystems").read_text()),
    ]
    findings += capabilities(Path("/proc/self/status").read_text())
    findings.append(cgroups({mounted.kind for mounted in read_mounts()}))
    findings += binaries(shutil.which)
    findings += cni_plugins(CNI_BIN_DIRS)
    findings += [port(name, number) for name, number in ports.items()]
    return findings


def missing_packages(findings: list[Finding]) -> list[str]:
    return sorted({finding.package for finding in findings if finding.package})


def user(effective_id: int) -> Finding:
    if effective_id == 0:
        return Finding("user", Verdict.OK, "root")
    return Finding(
        "user", Verdict.FAILED, f"uid {effective_id}", "containers need root: run podling with sudo"
    )


def kernel(release: str) -> Finding:
    numbers = release.split("-")[0].split(".")
    version = tuple(int(n) for n in numbers[:2] if n.isdigit())
    if version >= OLDEST_KERNEL:
        return Finding("kernel", Verdict.OK, release)
    oldest = ".".join(map(str, OLDEST_KERNEL))
    return Finding("kernel", Verdict.FAILED, release, f"podling needs Linux {oldest} or newer")


def overlay(filesystems: str) -> Finding:
    if any(line.split()[-1] == "overlay" for line in filesystems.splitlines() if line):
        return Finding("overlay filesystem", Verdict.OK, "present")
    remedy = "modprobe overlay; without it images are copied for every container"
    return Finding("overlay filesystem", Verdict.WARNING, "not loaded", remedy)


def capabilities(status: str) -> Iterator[Finding]:
    """From the text of /proc/self/status."""
    held = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), 16)
    missing = [name for bit, name in CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        remedy = "start podling where root keeps these (a privileged container, or the machine itself)"
        yield Finding("capabilities", Verdict.FAILED, f"missing {', '.join(missing)}", remedy)
    else:
        yield Finding("capabilities", Verdict.OK, "sufficient")
    if not held >> CAP_SYS_RESOURCE & 1:
        remedy = "containers cannot get an OOM score below podling's own; podling adapts to this"
        yield Finding("CAP_SYS_RESOURCE", Verdict.WARNING, "missing", remedy)


def cgroups(kinds: Set[str]) -> Finding:
    """By the types of the mounted file systems: version 1, 2, or both."""
    match "cgroup" in kinds, "cgroup2" in kinds:
        case True, True:
            return Finding("cgroups", Verdict.OK, "v1 (hybrid)")
        case True, False:
            return Finding("cgroups", Verdict.OK, "v1")
        case False, True:
            return Finding("cgroups", Verdict.OK, "v2")
    return Finding("cgroups", Verdict.FAILED, "none mounted", "mount cgroup2 on /sys/fs/cgroup")


def binaries(which: Callable[[str], str | None]) -> Iterator[Finding]:
    for program, package in BINARIES.items():
        path = which(program)
        if path:
            yield Finding(program, Verdict.OK, path)
        else:
            yield Finding(program, Verdict.FAILED, "not found", f"apt-get install {package}", package)


def cni_plugins(directories: tuple[Path, ...]) -> Iterator[Finding]:
    directory = next((d for d in directories if all((d / plugin).exists() for plugin in CNI_PLUGINS)), None)
    if directory:
        yield Finding("CNI plugins", Verdict.OK, str(directory))
    else:
        yield Finding(
            "CNI plugins", Verdict.FAILED, "not found", f"apt-get install {CNI_PACKAGE}", CNI_PACKAGE
        )


def port(name: str, number: int) -> Finding:
    what = f"port {number} ({name})"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return Finding(what, Verdict.FAILED, "in use", "choose another with --port")
    return Finding(what, Verdict.OK, "free")


def forwarding(chains: str, pods: str) -> Iterator[Finding]:
    """What others' filters do with packets of pods: those that are routed, and those to this machine.
    `chains` is what `nft -j list chains` says, empty if it says nothing; `pods` is their subnet, empty if it
    is not known yet.

    That podling accepts a packet is no help: each table judges it, and one that drops it is enough.
    """
    try:
        listed = [one["chain"] for one in json.loads(chains)["nftables"] if "chain" in one]
    except (ValueError, KeyError):
        return
    pods = pods or "the pods' subnet"
    of_ufw = {(chain["family"], chain["table"]) for chain in listed if chain["name"].startswith("ufw-")}
    found = False
    for chain in listed:
        table, hook = (chain["family"], chain["table"]), chain.get("hook")
        where = f"table {' '.join(table)}, chain {chain['name']}"
        if hook in DROPPED and chain.get("policy") == "drop":
            found = True
            by_ufw, by_iptables = DROPPED_REMEDIES[hook]
            remedy = (by_ufw if table in of_ufw else by_iptables).format(pods)
            yield Finding(DROPPED[hook], Verdict.WARNING, f"dropped by {where}", remedy)
        elif (chain["table"], chain["name"]) == ("firewalld", "filter_FORWARD"):
            found = True
            trusted = f"firewall-cmd --permanent --zone=trusted --add-source={pods} && firewall-cmd --reload"
            yield Finding(
                "forwarding", Verdict.WARNING, "rejected by firewalld outside of its zones", trusted
            )
    if not found:
        yield Finding("forwarding", Verdict.OK, "no other filter drops what pods send")
