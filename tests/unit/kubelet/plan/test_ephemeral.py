"""Ephemeral containers that may be removed: R-EPH-3, R-EPH-11. First as a table, then with entries that come
and go at any moment, whatever the kubelet has seen of it and whenever it crashes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podling.kubelet.plan.containers import REMOVING
from podling.kubelet.plan.plan import plan
from podling.kubelet.plan.restart import definition_hash
from podling.kubelet.pod.actions import Action, RemoveContainer, StartContainer, StopContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedPod
from podling.kubelet.status.pod_status import pod_status
from podling.kubelet.worker.worker import without_instance
from podling.model.gates import Gates
from podling.model.types.container import EphemeralContainer

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

ON = Gates({"EphemeralContainerRemoval": True})

REMOVED = [
    ("/ a /",   "a=run e=run",         "",             "stop e-0(30)"),
    ("/ a /",   "a=run e=unknown",     "",             "stop e-0(30)"),
    ("/ a /",   "a=run e=run",         "stop:e-0(30)", ""),
    ("/ a /",   "a=run e=exit0",       "",             "remove e-0"),
    ("/ a /",   "a=run e=created",     "",             "remove e-0"),
    ("/ a /",   "a=run e=created",     "start:e",      ""),
    ("/ a / e", "a=run e=run",         "",             ""),
    ("/ a / e", "a=run e=exit1",       "",             ""),
    ("/ a / e", "a=run e=run!",        "",             "stop e-0(30)"),
    ("/ a / e", "a=run e=exit0!",      "",             "start e#1"),
    ("/ a / e", "a=run e=exit0! e=exit0", "",          "remove e-0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seen", "in_flight", "planned"), REMOVED)
@pytest.mark.parametrize("gate", REMOVING)
def test_a_removed_entry_is_ended_and_let_go(
    scene: type[Scene], text: str, seen: str, in_flight: str, planned: str, gate: str
) -> None:
    """R-EPH-11"""
    pod = scene.pod(text)
    observed = scene.observed(pod, seen, in_flight=in_flight)
    assert scene.say(plan(pod, observed, scene.NOW, Gates({gate: True}))) == planned


def test_one_stopped_for_its_name_is_not_taken_for_its_successor(scene: type[Scene]) -> None:
    """R-EPH-11: removed and added again, word for word the same."""
    pod = scene.pod("/ a / e")
    stopped = scene.observed(pod, "a=run e=exit137", restarting=frozenset({"e-0"}))
    assert scene.say(plan(pod, stopped, scene.NOW, ON)) == "start e#1"


def test_the_end_of_a_removed_one_is_told(scene: type[Scene]) -> None:
    """R-EPH-11: each kill is an event."""
    pod = scene.pod("/ a /")
    (stop,) = plan(pod, scene.observed(pod, "a=run e=run"), scene.NOW, ON).actions
    assert isinstance(stop, StopContainer)
    assert (stop.message, stop.restart) == ("Stopping container e", True)


class World:
    """An API server's view of one pod, and a kubelet whose view of it is as old as its last `learn`."""

    def __init__(self, scene: type[Scene]) -> None:
        self.scene = scene
        self.entries: dict[str, tuple[int, EphemeralContainer]] = {}
        self.published: set[str] = set()
        self.added: Counter[str] = Counter()
        self.started: Counter[str] = Counter()
        self.made_for: dict[str, int] = {}
        self.pod = scene.pod("/ a /")
        self.seen_serials: dict[str, int] = {}
        app = scene.observed(self.pod, "a=run")
        self.sandboxes, self.containers = app.sandboxes, list(app.containers)
        self.in_flight: dict[Action, tuple[Any, int]] = {}
        self.restarting: set[str] = set()
        self.crashed = False

    # The API server

    def add(self, name: str, image: str) -> None:
        if name not in self.entries and name not in self.published:
            self.added[name] += 1
            self.entries[name] = (sum(self.added.values()), EphemeralContainer(name=name, image=image))

    def remove(self, name: str) -> None:
        self.entries.pop(name, None)

    def publish(self) -> None:
        self.published = {status.name for status in self.pod.status.ephemeral_container_statuses}

    # The kubelet

    def learn(self) -> None:
        self.pod.spec.ephemeral_containers = [entry for _, entry in self.entries.values()]
        self.seen_serials = {name: serial for name, (serial, _) in self.entries.items()}

    def sync(self) -> None:
        observed = self.observed()
        made = plan(self.pod, observed, self.scene.NOW, ON)
        self.pod.status = pod_status(self.pod, observed, self.scene.NOW)
        for action in made.actions:
            assert isinstance(action, StartContainer | StopContainer | RemoveContainer)
            spec = next((c for c in self.pod.spec.ephemeral_containers if c.name == action.name), None)
            self.in_flight[action] = (spec, self.seen_serials.get(action.name, 0))

    def observed(self) -> ObservedPod:
        return ObservedPod(
            sandboxes=self.sandboxes,
            containers=tuple(reversed(self.containers)),
            in_flight=frozenset(self.in_flight),
            restarting=frozenset(self.restarting),
        )

    def apply(self, action: Action) -> None:
        spec, serial = self.in_flight.pop(action)
        match action:
            case StartContainer():
                self.start(action, spec, serial)
            case StopContainer(id):
                serving = self.entries.get(action.name, (0,))[0]
                assert self.made_for[id] != serving, "ended although its entry is there"
                self.restarting.add(id)
                self.exit(id)
            case RemoveContainer(id):
                self.restarting.discard(id)
                self.containers = [c for c in self.containers if c.id != id]
                self.pod.status = without_instance(self.pod.status, id)

    def start(self, action: StartContainer, spec: EphemeralContainer, serial: int) -> None:
        assert not [c for c in self.containers if c.name == action.name and c.running], "runs twice"
        self.started[action.name] += 1
        made = ObservedContainer(
            id=f"{action.name}-{self.started.total()}",
            name=action.name,
            type=ContainerType.EPHEMERAL,
            sandbox_id=self.sandboxes[0].id,
            attempt=action.attempt,
            state=ContainerState.RUNNING,
            created_at=self.scene.NOW,
            started_at=self.scene.NOW,
            hash=definition_hash(spec),
        )
        assert made.attempt not in [c.attempt for c in self.containers if c.name == made.name]
        self.containers.append(made)
        self.made_for[made.id] = serial

    def exit(self, id: str) -> None:
        self.containers = [
            replace(c, state=ContainerState.EXITED, finished_at=self.scene.NOW) if c.id == id else c
            for c in self.containers
        ]

    def crash(self) -> None:
        self.in_flight, self.restarting, self.crashed = {}, set(), True

    def step(self, number: int) -> None:
        kind, lot = number % 10, number // 10
        name, image = "xy"[lot % 2], ("one", "two")[lot // 2 % 2]
        running = [c for c in self.containers if c.running and c.type is ContainerType.EPHEMERAL]
        if kind == 0:
            self.remove(name)
        elif kind <= 2:
            self.add(name, image)
        elif kind == 3:
            self.publish()
        elif kind <= 5:
            self.learn()
            self.sync()
        elif kind <= 7 and self.in_flight:
            self.apply(list(self.in_flight)[lot % len(self.in_flight)])
        elif kind == 8 and running:
            self.exit(running[lot % len(running)].id)
        elif lot % 8 == 7:
            self.crash()

    def settle(self) -> None:
        for _ in range(20):
            self.learn()
            self.sync()
            if not self.in_flight:
                return
            for action in list(self.in_flight):
                self.apply(action)
        raise AssertionError("never comes to rest")


@given(st.lists(st.integers(0, 319), max_size=60))
@example([1, 94, 0, 76, 18, 114, 1, 96])  # Let go before the server heard that it was there.
def test_entries_may_come_and_go_at_any_moment(scene: type[Scene], tape: list[int]) -> None:
    """R-EPH-3, R-EPH-11"""
    world = World(scene)
    for number in tape:
        world.step(number)
        assert all(world.started[name] <= world.added[name] for name in world.started), "restarted"
    world.settle()
    left = {c.name for c in world.containers if c.type is ContainerType.EPHEMERAL}
    assert left == set(world.entries), "what was removed is gone, what is there was started"
    shown = {status.name for status in world.pod.status.ephemeral_container_statuses}
    assert shown == set(world.entries), "the names of what is gone are free"
    for name, (_, entry) in world.entries.items():
        newest = next(c for c in reversed(world.containers) if c.name == name)
        assert newest.hash == definition_hash(entry)
        assert world.crashed or newest.id not in world.restarting, "ended and never started"
