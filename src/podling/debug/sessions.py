"""The debug containers of a cluster: by whom, with what, for how long, and how they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from podling.debug.container import status_of
from podling.debug.copies import DEBUGGED_IN
from podling.model.time import human_duration, parse_time, rfc3339
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import ManagedFieldsEntry
from podling.model.types.pod import Pod

MANAGER = "podling-debug"
LIST = "f:ephemeralContainers"
MOST_MANAGER = 128
"""Characters that a field manager's name may have."""


def manager(user: str) -> str:
    """Under which name a debug container is added, so that the pod itself says by whom."""
    printable = "".join(one for one in user if one.isprintable())
    return f"{MANAGER}:{printable}"[:MOST_MANAGER]


class DebugSession(msgspec.Struct, frozen=True):
    """`by` is who added it, as the client said, or else the program that did; `since` is when it began to
    run, empty if it has not; `until` when its pod ends by itself, empty for no end; `command` is what it
    runs, empty for the image's own."""

    namespace: str
    pod: str
    container: str
    image: str
    target: str
    by: str
    state: str
    since: str
    is_running: bool
    until: str = ""
    node: str = ""
    command: Sequence[str] = ()

    def age(self, now: datetime) -> str:
        return human_duration((now - parse_time(self.since)).total_seconds()) if self.since else ""

    def left(self, now: datetime) -> str:
        """How long until its pod ends by itself."""
        return human_duration(max(0.0, (parse_time(self.until) - now).total_seconds())) if self.until else ""


def sessions(pods: Iterable[Pod]) -> Iterator[DebugSession]:
    """Those of the pods, in their order: ephemeral containers, and pods that were made to debug in."""
    for pod in pods:
        if own := pod.metadata.annotations.get(DEBUGGED_IN):
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                if container.name == own:
                    yield _session(pod, container, _maker(pod))
        by = _adders(pod.metadata.managed_fields)
        for added in pod.spec.ephemeral_containers:
            yield _session(pod, added, by.get(added.name, ""), added.target_container_name)


def _session(pod: Pod, container: Container | EphemeralContainer, by: str, target: str = "") -> DebugSession:
    state, since, is_running = _state(pod, container.name)
    seconds, began = pod.spec.active_deadline_seconds, pod.status.start_time
    return DebugSession(
        pod.metadata.namespace,
        pod.metadata.name,
        container.name,
        container.image,
        target,
        by,
        state,
        since,
        is_running,
        rfc3339(parse_time(began) + timedelta(seconds=seconds)) if seconds and began and is_running else "",
        pod.spec.node_name,
        [*container.command, *container.args],
    )


def _maker(pod: Pod) -> str:
    names = (entry.manager for entry in pod.metadata.managed_fields)
    return next((name.partition(":")[2] for name in names if name.startswith(f"{MANAGER}:")), "")


def attachable(pod: Pod) -> Iterator[DebugSession]:
    """Those of the pod at whose terminal somebody can sit down."""
    with_terminal = {one.name for one in pod.spec.ephemeral_containers if one.tty and one.stdin}
    return (one for one in sessions([pod]) if one.is_running and one.container in with_terminal)


def _state(pod: Pod, name: str) -> tuple[str, str, bool]:
    status = status_of(pod, name)
    if status is None:
        return "Waiting", "", False
    if running := status.state.running:
        return "Running", running.started_at or "", True
    if ended := status.state.terminated:
        return f"{ended.reason or 'Ended'} ({ended.exit_code})", ended.started_at or "", False
    waiting = status.state.waiting
    return (waiting.reason if waiting and waiting.reason else "Waiting"), "", False


def _adders(entries: Iterable[ManagedFieldsEntry]) -> Mapping[str, str]:
    """Container → who added it, from what the server keeps of who wrote which field."""
    found: dict[str, str] = {}
    for entry in entries:
        if LIST.encode() not in bytes(entry.fields_v1):
            continue
        fields: dict[str, Any] = msgspec.json.decode(entry.fields_v1)
        name = entry.manager.removeprefix(f"{MANAGER}:")
        for key in fields.get("f:spec", {}).get(LIST, {}):
            if key.startswith("k:"):
                found[msgspec.json.decode(key[2:])["name"]] = name
    return found
