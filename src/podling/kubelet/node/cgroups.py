"""The pods' cgroups: where each is and how it goes away, on cgroup v1, hybrid and v2.

The layout is upstream's cgroupfs driver: a pod lives at `<root>/pod<uid>` when its QoS class is Guaranteed,
else at `<root>/burstable/pod<uid>` or `<root>/besteffort/pod<uid>`. The runtime makes what is missing when it
starts a sandbox below that path; the kubelet removes it after the pod.
"""

from __future__ import annotations

import os
from pathlib import Path

_CLASS_PART = {"Guaranteed": "", "Burstable": "/burstable", "BestEffort": "/besteffort"}


def pod_cgroup(root: str, qos_class: str, uid: str) -> str:
    """The cgroup path of a pod, the same in every hierarchy."""
    return f"{root.rstrip('/')}{_CLASS_PART[qos_class]}/pod{uid}"


class Cgroups:
    """Every hierarchy mounted at or below `mount` (one for v2; one a controller for v1; both when hybrid)."""

    def __init__(self, mount: Path, root: str, table: Path = Path("/proc/self/mountinfo")) -> None:
        self.root = root
        self.hierarchies = hierarchies(mount, table)

    def pods(self) -> set[str]:
        """The uids that still have a cgroup in any hierarchy."""
        found: set[str] = set()
        for hierarchy in self.hierarchies:
            for part in _CLASS_PART.values():
                found.update(_pod_uids(hierarchy / f"{self.root}{part}".lstrip("/")))
        return found

    def remove(self, uid: str) -> bool:
        """Remove the pod's cgroups wherever they are; False when one is still busy and must be tried
        again."""
        done = True
        for hierarchy in self.hierarchies:
            for part in _CLASS_PART.values():
                done &= remove_tree(hierarchy / f"{self.root}{part}/pod{uid}".lstrip("/"))
        return done

    def remove_root(self) -> bool:
        """Remove the root cgroup, for when no pod is left and the kubelet goes for good."""
        removed = [remove_tree(hierarchy / self.root.lstrip("/")) for hierarchy in self.hierarchies]
        return all(removed)


def hierarchies(mount: Path, table: Path = Path("/proc/self/mountinfo")) -> tuple[Path, ...]:
    found = []
    for line in table.read_text().splitlines():
        place, kind = _place_and_type(line)
        if kind in ("cgroup", "cgroup2") and (place == mount or mount in place.parents):
            found.append(place)
    return tuple(dict.fromkeys(found))


def _place_and_type(line: str) -> tuple[Path, str]:
    before, _, after = line.partition(" - ")
    return Path(before.split(" ")[4]), after.split(" ")[0]


def _pod_uids(parent: Path) -> list[str]:
    try:
        names = [entry.name for entry in os.scandir(parent) if entry.is_dir()]
    except FileNotFoundError:
        return []
    return [name.removeprefix("pod") for name in names if name.startswith("pod")]


def remove_tree(cgroup: Path) -> bool:
    """A cgroup's directory is removed by rmdir, children first; its files cannot and need not be deleted."""
    try:
        children = [Path(entry.path) for entry in os.scandir(cgroup) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return True
    removed = [remove_tree(child) for child in children]
    try:
        cgroup.rmdir()
    except FileNotFoundError:
        return all(removed)
    except OSError:
        return False
    return all(removed)
