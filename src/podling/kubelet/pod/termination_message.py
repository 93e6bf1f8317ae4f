"""The termination message of a container (R-INIT-3, `terminationMessagePath`).

The kubelet makes the file, the runtime mounts it into the container, and after the exit its content is the
message. With the policy FallbackToLogsOnError, a failed container that wrote nothing gets the end of its log.
"""

from __future__ import annotations

import os
from pathlib import Path

from podling.kubelet.files.regular import open_regular
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.directories import PodDirectory, log_path
from podling.kubelet.pod.observed import ObservedContainer
from podling.model.types.pod import Pod

MESSAGE_LIMIT = 4096
LOG_LIMIT = 2048
LOG_LINES = 80
FALLBACK_TO_LOGS = "FallbackToLogsOnError"


def make_message_file(directory: PodDirectory, container: str, attempt: int) -> Path:
    path = directory.termination_message(container, attempt)
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    path.touch()
    # Whatever user the container runs as may write it.
    path.chmod(0o666)
    return path


def termination_message(pod: Pod, container: ObservedContainer, directory: PodDirectory) -> str:
    """The message of a container that has exited, at most 4096 bytes; "" if it left none."""
    message = _end(directory.termination_message(container.name, container.attempt), MESSAGE_LIMIT)
    if message or container.exit_code == 0 or _policy(pod, container.name) != FALLBACK_TO_LOGS:
        return message
    return log_tail(_end(directory.logs / log_path(container.name, container.attempt), 4 * LOG_LIMIT))


def _policy(pod: Pod, name: str) -> str:
    return next((c.termination_message_policy for _, c in all_containers(pod) if c.name == name), "")


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
