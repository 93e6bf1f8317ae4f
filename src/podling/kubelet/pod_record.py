"""What one pod's worker knows, kept up to date by events and by the results of its own actions.

The only mutable knowledge of a worker. `observed()` freezes it for the planner and the status. An exit learnt
from an event is a fact: a runtime that still answers RUNNING for the container afterwards is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from podling.kubelet.observed import (
    ContainerState,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    StartFailure,
    Termination,
    from_nanoseconds,
)

_Made = TypeVar("_Made", ObservedSandbox, ObservedContainer)


@dataclass(frozen=True, slots=True)
class Exit:
    code: int
    at: datetime
    out_of_memory: bool = False


class PodRecord:
    """`container_ids` and `sandbox_ids` are what runtime events of this pod are about."""

    def __init__(self) -> None:
        self._sandboxes: dict[str, ObservedSandbox] = {}
        self._containers: dict[str, ObservedContainer] = {}
        self._exits: dict[str, Exit] = {}
        self._out_of_memory: set[str] = set()
        self._failures: dict[str, StartFailure] = {}
        self.sandbox_failure: StartFailure | None = None
        self.initialized: frozenset[str] = frozenset()
        self.in_flight: set[str] = set()
        self.restarting: set[str] = set()
        self.termination: Termination | None = None
        self.volumes_ready = False
        self.volumes_error = ""
        self.started_at: datetime | None = None

    def observed(self) -> ObservedPod:
        return ObservedPod(
            sandboxes=_newest_first(self._sandboxes.values()),
            containers=_newest_first(self._containers.values()),
            initialized_sandboxes=self.initialized,
            failures=dict(self._failures),
            sandbox_failure=self.sandbox_failure,
            volumes_ready=self.volumes_ready,
            volumes_error=self.volumes_error,
            in_flight=frozenset(self.in_flight),
            restarting=frozenset(self.restarting),
            termination=self.termination,
            started_at=self.started_at,
        )

    def sandbox(self, sandbox_id: str) -> ObservedSandbox | None:
        return self._sandboxes.get(sandbox_id)

    def container(self, container_id: str) -> ObservedContainer | None:
        return self._containers.get(container_id)

    def ids(self) -> set[str]:
        return self._sandboxes.keys() | self._containers.keys()

    def put_sandbox(self, sandbox: ObservedSandbox) -> None:
        """A stop that succeeded stays known, and an exit learnt from an event is a fact."""
        known = self._sandboxes.get(sandbox.id)
        stopped = sandbox.stopped or (known is not None and known.stopped)
        ready = sandbox.ready and not stopped and sandbox.id not in self._exits
        self._sandboxes[sandbox.id] = replace(sandbox, stopped=stopped, ready=ready)

    def put_container(self, container: ObservedContainer) -> None:
        exit_ = self._exits.get(container.id)
        if exit_ and container.state is not ContainerState.EXITED:
            container = _exited(container, exit_)
        elif container.id in self._out_of_memory and container.exited and not container.reason:
            container = replace(container, reason="OOMKilled")
        known = self._containers.get(container.id)
        if known and known.message and not container.message:
            container = replace(container, message=known.message)
        self._containers[container.id] = container

    def running(self, container_id: str, at: datetime) -> None:
        """The runtime has started it; its exit may already have been told."""
        container = self._containers[container_id]
        if container.state is ContainerState.CREATED:
            self.put_container(replace(container, state=ContainerState.RUNNING, started_at=at))

    def exited(self, id_: str, code: int, nanoseconds: int, now: datetime) -> bool:
        """An EXITED event. False when it says nothing new."""
        if id_ in self._exits:
            return False
        at = from_nanoseconds(nanoseconds) if nanoseconds else now
        self._exits[id_] = exit_ = Exit(code, at, id_ in self._out_of_memory)
        if sandbox := self._sandboxes.get(id_):
            self._sandboxes[id_] = replace(sandbox, ready=False)
        container = self._containers.get(id_)
        if container and not container.exited:
            self._containers[id_] = _exited(container, exit_)
        return True

    def out_of_memory(self, container_id: str) -> None:
        self._out_of_memory.add(container_id)

    def message(self, container_id: str, text: str) -> None:
        if container := self._containers.get(container_id):
            self._containers[container_id] = replace(container, message=text)

    def sandbox_stopped(self, sandbox_id: str) -> None:
        if sandbox := self._sandboxes.get(sandbox_id):
            self._sandboxes[sandbox_id] = replace(sandbox, stopped=True, ready=False)

    def remove_sandbox(self, sandbox_id: str) -> None:
        """A sandbox takes its containers with it."""
        self._sandboxes.pop(sandbox_id, None)
        for container in list(self._containers.values()):
            if container.sandbox_id == sandbox_id:
                self.remove_container(container.id)
        self._exits.pop(sandbox_id, None)

    def remove_container(self, container_id: str) -> None:
        self._containers.pop(container_id, None)
        self._exits.pop(container_id, None)
        self._out_of_memory.discard(container_id)
        self.restarting.discard(container_id)

    def failed(self, name: str, reason: str, message: str, now: datetime) -> StartFailure:
        known = self._failures.get(name)
        count = known.count + 1 if known else 1
        failure = self._failures[name] = StartFailure(reason, message, count, now)
        return failure

    def sandbox_failed(self, reason: str, message: str, now: datetime) -> StartFailure:
        count = self.sandbox_failure.count + 1 if self.sandbox_failure else 1
        failure = self.sandbox_failure = StartFailure(reason, message, count, now)
        return failure

    def succeeded(self, name: str) -> None:
        self._failures.pop(name, None)

    def replace_all(
        self, sandboxes: Iterable[ObservedSandbox], containers: Iterable[ObservedContainer]
    ) -> None:
        """What the runtime has now, after events may have been missed. What it no longer has is gone."""
        found_sandboxes, found_containers = list(sandboxes), list(containers)
        found = {s.id for s in found_sandboxes} | {c.id for c in found_containers}
        for gone in self._containers.keys() - found:
            self.remove_container(gone)
        for gone in self._sandboxes.keys() - found:
            del self._sandboxes[gone]
        for sandbox in found_sandboxes:
            self.put_sandbox(sandbox)
        for container in found_containers:
            self.put_container(container)


def _exited(container: ObservedContainer, exit_: Exit) -> ObservedContainer:
    reason = "OOMKilled" if exit_.out_of_memory else container.reason
    return replace(
        container, state=ContainerState.EXITED, exit_code=exit_.code, finished_at=exit_.at, reason=reason
    )


def _newest_first(items: Iterable[_Made]) -> tuple[_Made, ...]:
    return tuple(sorted(items, key=lambda item: (item.created_at, item.attempt), reverse=True))
