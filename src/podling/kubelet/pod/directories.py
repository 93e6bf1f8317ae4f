"""Where the files of a pod are. The layout below the kubelet's root directory is Kubernetes'.

    <root>/pods/<uid>/etc-hosts                                   mounted into every container
    <root>/pods/<uid>/initialized                                 the sandbox that is initialized (R-INIT-4)
    <root>/pods/<uid>/containers/<container>/<attempt>            the termination message file
    <root>/pods/<uid>/volumes/kubernetes.io~<plugin>/<volume>     a volume
    <root>/pods/<uid>/volume-subpaths/<volume>/<container>/<n>    a bind mount of part of a volume
    <logs>/<namespace>_<name>_<uid>/<container>/<attempt>.log     the container's log

`initialized` is written before the first app container of a sandbox is created.

The kubelet makes the termination message file (R-INIT-3, `terminationMessagePath`), the runtime mounts it
into the container, and after the exit its content is the message. With the policy FallbackToLogsOnError, a
failed container that wrote nothing gets the end of its log.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podling.kubelet.config import KubeletConfig
from podling.kubelet.files import tree
from podling.kubelet.files.descriptors import DIRECTORY, open_regular
from podling.kubelet.pod.containers import container_named
from podling.kubelet.pod.observed import ObservedContainer
from podling.model.types.pod import Pod
from podling.process.mounts import unmount_under

MESSAGE_LIMIT = 4096
LOG_LIMIT = 2048
LOG_LINES = 80
FALLBACK_TO_LOGS = "FallbackToLogsOnError"


class PodDirectory:
    """One pod's directory and its log directory. Makes nothing until asked."""

    def __init__(self, pods_dir: Path, log_dir: Path, namespace: str, name: str, uid: str) -> None:
        self.path = pods_dir / uid
        self.logs = log_dir / f"{namespace}_{name}_{uid}"

    @classmethod
    def of(cls, pod: Pod, config: KubeletConfig) -> PodDirectory:
        meta = pod.metadata
        return cls(config.pods_dir, config.log_dir, meta.namespace, meta.name, meta.uid)

    def create(self) -> bool:
        """Make both directories; False if the pod's directory was there. It is for root alone (0750); what is
        mounted from it has modes of its own."""
        self.logs.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            self.path.mkdir(mode=0o750, parents=True)
        except FileExistsError:
            return False
        return True

    @property
    def etc_hosts(self) -> Path:
        return self.path / "etc-hosts"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    def volume(self, plugin: str, name: str) -> Path:
        return self.volumes / f"kubernetes.io~{plugin}" / name

    def subpath(self, volume: str, container: str, index: int) -> Path:
        return self.path / "volume-subpaths" / volume / container / str(index)

    def container_logs(self, container: str) -> Path:
        return self.logs / container

    def termination_message(self, container: str, attempt: int) -> Path:
        return self.path / "containers" / container / str(attempt)

    def record_initialized(self, sandbox_id: str) -> None:
        """For the next kubelet."""
        replace_file(self.path / "initialized", sandbox_id.encode())

    def initialized_sandboxes(self) -> frozenset[str]:
        """The sandbox recorded last; empty when there is no record."""
        try:
            return frozenset(((self.path / "initialized").read_text(),))
        except FileNotFoundError:
            return frozenset()

    def remove_volumes(self) -> None:
        """Unmount and delete the volumes; the pod's other files stay. Raises OSError."""
        for part in (self.path / "volume-subpaths", self.volumes):
            unmount_under(part)
            tree.remove(part)

    def remove(self) -> None:
        """Everything but the logs. Raises OSError. Mounts are removed first, so that no file behind a mount
        is deleted through it."""
        unmount_under(self.path)
        tree.remove(self.path)

    def remove_instance(self, container: str, attempt: int) -> None:
        """The log, with its rotated parts, and the termination message of one instance."""
        with suppress(FileNotFoundError, NotADirectoryError):
            logs = os.open(self.container_logs(container), DIRECTORY)
            try:
                for name in os.listdir(logs):
                    if name.startswith(f"{attempt}.log"):
                        os.unlink(name, dir_fd=logs)
            finally:
                os.close(logs)
        self.termination_message(container, attempt).unlink(missing_ok=True)

    def remove_logs(self) -> None:
        with suppress(OSError):
            tree.remove(self.logs)


def replace_file(file: Path, content: bytes) -> None:
    """Write a file of a pod's directory, of which a reader finds the old content or the new. It is not synced
    to disk: a machine that goes down takes sandboxes and containers with it, too. Raises OSError."""
    file.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.rename(file)


def stored_pods(pods_dir: Path) -> list[str]:
    """The uids of the pods that have a directory."""
    try:
        return sorted(entry.name for entry in os.scandir(pods_dir) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def log_path(name: str, attempt: int) -> str:
    """Of one instance of a container, relative to the pod's log directory."""
    return f"{name}/{attempt}.log"


def make_message_file(directory: PodDirectory, container: str, attempt: int) -> Path:
    """Make the termination message file of one instance, to be mounted into it."""
    path = directory.termination_message(container, attempt)
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    path.touch()
    # Whatever user the container runs as may write it.
    path.chmod(0o666)
    return path


def termination_message(pod: Pod, container: ObservedContainer, directory: PodDirectory) -> str:
    """The message of a container that has exited, at most 4096 bytes; "" if it left none."""
    message = _end(directory.termination_message(container.name, container.attempt), MESSAGE_LIMIT)
    spec = container_named(pod, container.name)
    policy = spec.termination_message_policy if spec else ""
    if message or container.exit_code == 0 or policy != FALLBACK_TO_LOGS:
        return message
    return log_tail(_end(directory.logs / log_path(container.name, container.attempt), 4 * LOG_LIMIT))


def log_tail(log: str) -> str:
    """The last lines of a CRI log without their prefixes, at most LOG_LINES of them and LOG_LIMIT bytes."""
    lines = []
    for line in log.splitlines()[-LOG_LINES:]:
        fields = line.split(" ", 3)
        if len(fields) == 4:
            lines.append(fields[3] + ("\n" if fields[2].startswith("F") else ""))
    return "".join(lines).encode()[-LOG_LIMIT:].decode(errors="ignore")


def _end(path: Path, limit: int) -> str:
    """Its last `limit` bytes, as Kubernetes' kubelet reads both."""
    try:
        with open_regular(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - limit, 0))
            return file.read(limit).decode(errors="replace")
    except OSError:
        return ""
