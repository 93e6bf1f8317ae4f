"""The planner against a tiny runtime, with random outcomes, crashes of the kubelet at any point, and lost
sandboxes.

`World` is a runtime, a disk, an API server and a clock. It applies what the planner asks for, one action at
a time in any order, and remembers what really happened, whatever the kubelet forgets: the properties are
checked against that memory. What the kubelet writes is judged by the API server's own rules.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podling.apiserver.kinds.pods.status import PodStatusPart
from podling.kubelet.plan.containers import recorded
from podling.kubelet.plan.plan import plan
from podling.kubelet.plan.restart import definition_hash
from podling.kubelet.pod.actions import (
    Action,
    CreateSandbox,
    Finish,
    Plan,
    RecordInitialized,
    RemoveContainer,
    RemoveSandbox,
    StartContainer,
    StopContainer,
    StopSandbox,
    covers,
)
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import (
    ContainerState,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    StartFailure,
)
from podling.kubelet.status.conditions import with_standing
from podling.kubelet.status.pod_status import pod_status
from podling.model.rules.resources import qos_class, volume_container_names
from podling.model.time import rfc3339
from podling.model.types.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EphemeralContainer,
)
from podling.model.types.pod_status import PodStatus

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

SHAPES = ["a", "i1 / a", "i1 i2 / a b", "s1* i1 / a", "i1 s1* i2 s2* / a", "/ a / e", "i1 i2 / a / e f>a"]
SHAPES += ["v1+ v2+ / a", "v1+ v2+ s1* i1 / a b / e"]
POLICIES = ["Always", "OnFailure", "Never"]
ENDS_ROUND = 42


class World:
    def __init__(self, scene: type[Scene], shape: str, policy: str, ender: str | None = None) -> None:
        """`ender` is the container whose exit with ENDS_ROUND restarts all (RestartAllContainers)."""
        self.pod = scene.pod(shape, policy)
        self.pod.metadata.resource_version, self.pod.status.qos_class = "1", qos_class(self.pod)
        self.ender = ender
        for container in (*self.pod.spec.init_containers, *self.pod.spec.containers):
            if container.name == ender:
                codes = ContainerRestartRuleOnExitCodes(operator="In", values=[ENDS_ROUND])
                container.restart_policy_rules = [
                    ContainerRestartRule(action="RestartAllContainers", exit_codes=codes)
                ]
        self.specs = {container.name: (kind, container) for kind, container in all_containers(self.pod)}
        self.now = scene.NOW
        self.sandboxes: list[ObservedSandbox] = []
        self.containers: list[ObservedContainer] = []
        self.record: frozenset[str] = frozenset()
        self.finished = False
        self.clock = 0
        self.started: list[ObservedContainer] = []
        self.passed: set[tuple[str, str, str]] = set()
        self.written = self.pod.status
        self.boot()

    def boot(self) -> None:
        """A kubelet begins: all it knows is the runtime, its record and the pod's status."""
        self.in_flight: dict[Action, None] = {}
        self.failures: dict[str, StartFailure] = {}
        self.pod.status, self.began = self.written, self.now
        self.sandboxes = [replace(sandbox, stopped=False) for sandbox in self.sandboxes]

    # The kubelet

    def sync(self, writes: bool = True) -> Plan:
        """`writes`: the API hears of the status, before there is another."""
        observed = self.observed()
        made = plan(self.pod, observed, self.now)
        again = plan(
            self.pod,
            replace(observed, in_flight=observed.in_flight | set(made.actions)),
            self.now,
        )
        twice = [a for a in again.actions for under_way in made.actions if covers(under_way, a)]
        assert not twice, "asked for twice"
        assert made.wake_at is None or made.wake_at > self.now
        before = self.pod.status.phase
        self.pod.status = pod_status(self.pod, observed, self.now)
        assert before in ("", "Pending", "Running", self.pod.status.phase), "left a terminal phase"
        self.in_flight |= dict.fromkeys(made.actions)
        if writes:
            self.write()
        return made

    def write(self) -> None:
        status = with_standing(self.pod.spec, self.written, self.pod.status)
        new, old = (replace(self.pod, status=status) for status in (status, self.written))
        assert PodStatusPart().validate_update(new, old) == []
        self.written = status

    def observed(self) -> ObservedPod:
        return ObservedPod(
            sandboxes=tuple(reversed(self.sandboxes)),
            containers=tuple(reversed(self.containers)),
            initialized_sandboxes=self.record,
            failures=dict(self.failures),
            in_flight=frozenset(self.in_flight),
            started_at=self.began,
        )

    def apply(self, action: Action, fails: bool = False) -> None:
        self.in_flight.pop(action, None)
        match action:
            case CreateSandbox(attempt):
                made = ObservedSandbox(f"box{self.clock}", attempt, self.tick(), ready=not fails)
                attempts = [s.attempt for s in self.sandboxes]
                assert attempt not in attempts, "the runtime refuses an attempt twice"
                self.sandboxes.append(made)
            case StopSandbox(sandbox_id):
                self.stop_sandbox(sandbox_id)
                self.change_sandbox(sandbox_id, stopped=True)
            case RemoveSandbox(sandbox_id):
                self.stop_sandbox(sandbox_id)
                self.sandboxes = [s for s in self.sandboxes if s.id != sandbox_id]
                self.containers = [c for c in self.containers if c.sandbox_id != sandbox_id]
            case StartContainer():
                self.start(action, fails)
            case StopContainer(container_id):
                self.exit(container_id, 137)
            case RemoveContainer(container_id):
                gone = [c for c in self.containers if c.id == container_id]
                assert not any(c.running for c in gone), "removed under its feet"
                self.containers = [c for c in self.containers if c.id != container_id]
            case RecordInitialized(sandbox_id):
                self.record |= {sandbox_id}
            case Finish():
                assert not self.sandboxes and not self.containers
                self.finished = True

    def start(self, action: StartContainer, fails: bool) -> None:
        if not self.sandboxes or not self.sandboxes[-1].ready:
            return
        if fails:
            count = self.failures[action.name].count + 1 if action.name in self.failures else 1
            self.failures[action.name] = StartFailure("ErrImagePull", "no such image", count, self.now)
            return
        self.failures.pop(action.name, None)
        self.run(self.create(action))

    def create(self, action: StartContainer) -> ObservedContainer:
        kind, spec = self.specs[action.name]
        made = ObservedContainer(
            id=f"{action.name}.{len(self.started)}.{self.clock}",
            name=action.name,
            type=kind,
            sandbox_id=self.sandboxes[-1].id,
            attempt=action.attempt,
            state=ContainerState.CREATED,
            created_at=self.tick(),
            hash=definition_hash(spec),
            crashes=action.crashes,
            round=action.round,
        )
        names = [(c.name, c.attempt) for c in self.containers if c.sandbox_id == made.sandbox_id]
        assert (made.name, made.attempt) not in names, "the runtime refuses an attempt twice"
        self.containers.append(made)
        return made

    def run(self, container: ObservedContainer) -> None:
        self.check_start(container)
        self.change(container.id, state=ContainerState.RUNNING, started_at=self.now)
        self.started.append(container)
        if container.type is ContainerType.SIDECAR:
            self.passed.add((*place(container), container.name))

    # What may happen to the runtime

    def exit(self, container_id: str, code: int) -> None:
        for container in self.containers:
            if container.id == container_id and container.running:
                self.change(container_id, state=ContainerState.EXITED, exit_code=code, finished_at=self.now)
                if code == 0:
                    self.passed.add((*place(container), container.name))

    def stop_sandbox(self, sandbox_id: str) -> None:
        for container in self.containers:
            if container.sandbox_id == sandbox_id:
                self.exit(container.id, 137)
        self.change_sandbox(sandbox_id, ready=False)

    def crash(self, done: int) -> None:
        """The kubelet dies; of the actions under way those in `done` still took effect, or half of it."""
        for index, action in enumerate(list(self.in_flight)):
            if done >> (index % 8) & 1:
                half = done & 256 and self.sandboxes and self.sandboxes[-1].ready
                if half and isinstance(action, StartContainer):
                    self.create(action)
                else:
                    self.apply(action)
        self.boot()

    def collect(self, index: int) -> None:
        """Someone else collects a finished init container."""
        done = [c for c in self.containers if c.type is ContainerType.INIT and c.exited]
        # The newest instance of a container is nobody's to collect as long as a round is named by it.
        done = [c for c in done if c.name != self.ender]
        if done:
            self.containers.remove(done[index % len(done)])

    def wipe(self, everything: bool) -> None:
        """The kubelet dies, and the runtime comes back without its newest sandbox, or with nothing."""
        gone = {sandbox.id for sandbox in (self.sandboxes if everything else self.sandboxes[-1:])}
        self.sandboxes = [s for s in self.sandboxes if s.id not in gone]
        self.containers = [c for c in self.containers if c.sandbox_id not in gone]
        left = {c.id for c in self.containers}
        self.started = [c for c in self.started if c.id in left or self.is_known(c)]
        self.boot()

    def is_known(self, container: ObservedContainer) -> bool:
        """Whether the API has heard that it ran; what nobody has can happen twice."""
        status = recorded(self.written, container.name)
        return status is not None and bool(status.state.running or status.state.terminated)

    def change(self, container_id: str, **fields: Any) -> None:
        self.containers = [replace(c, **fields) if c.id == container_id else c for c in self.containers]

    def change_sandbox(self, sandbox_id: str, **fields: Any) -> None:
        self.sandboxes = [replace(s, **fields) if s.id == sandbox_id else s for s in self.sandboxes]

    def tick(self) -> datetime:
        self.clock += 1
        return self.now + timedelta(microseconds=self.clock)

    # What must never happen

    def check_start(self, new: ObservedContainer) -> None:
        twins = [c for c in self.containers if c.name == new.name and c.running]
        assert not twins, f"{new.name} runs twice"
        before = [c for c in self.started if c.name == new.name]
        if new.type is ContainerType.EPHEMERAL:
            assert not before, "an ephemeral container was restarted"
            return
        old = [c for c in self.containers if c.running and place(c) != place(new)]
        assert all(c.type is ContainerType.EPHEMERAL for c in old), f"{new.name} beside an earlier round"
        alive = [c for c in self.containers if c.type is ContainerType.REGULAR and c.running]
        assert new.type is not ContainerType.INIT or not alive, f"{new.name} beside an app container"
        together = volume_container_names(self.pod.spec)
        for spec in self.pod.spec.init_containers:
            if spec.name == new.name or {spec.name, new.name} <= together:
                break
            assert (*place(new), spec.name) in self.passed, f"{new.name} before {spec.name} was done"
        if new.type is ContainerType.REGULAR:
            ended = [c for c in self.containers if c.name == new.name and c.exited]
            ended = [c for c in ended if place(c) == place(new)]
            before = [c for c in before if c.round == new.round]
            policy = self.specs[new.name][1].restart_policy or self.pod.spec.restart_policy
            assert policy != "Never" or not before, "restarted against the policy"
            assert policy != "OnFailure" or not any(c.exit_code == 0 for c in ended), (
                "restarted after success"
            )


def place(container: ObservedContainer) -> tuple[str, str]:
    """The sandbox, and the round of it, a container was made in."""
    return container.sandbox_id, container.round


def choose(world: World, number: int) -> None:
    """One thing happens, by lot."""
    kind, lot = number % 10, number // 10
    running = [c for c in world.containers if c.running]
    flying = list(world.in_flight)
    if kind <= 4 and flying:
        world.apply(flying[lot % len(flying)], fails=lot % 7 == 6)
    elif kind <= 6 and running:
        chosen = running[lot % len(running)]
        codes = (0, ENDS_ROUND, 1) if chosen.name == world.ender else (0, 0, 1)
        world.exit(chosen.id, codes[lot % 3])
    elif kind == 7:
        world.now += timedelta(seconds=(1, 10, 400)[lot % 3])
    elif kind == 8:
        world.crash(lot)
    elif lot % 2:
        world.collect(lot)
    elif world.sandboxes:
        world.stop_sandbox(world.sandboxes[-1].id)


def settle(world: World) -> Plan:
    """From now on all goes well: everything asked for is done, whatever is to end ends well."""
    for _ in range(150):
        made = world.sync()
        if world.finished or (not world.in_flight and at_rest(world, made)):
            return made
        for action in list(world.in_flight):
            world.apply(action)
        for container in world.containers:
            if container.running and (container.type is ContainerType.INIT or must_end(world, container)):
                world.exit(container.id, 0)
        if not made.actions and made.wake_at:
            world.now = made.wake_at
    raise AssertionError("never comes to rest")


def must_end(world: World, container: ObservedContainer) -> bool:
    return container.type is ContainerType.REGULAR and world.pod.spec.restart_policy != "Always"


def at_rest(world: World, made: Plan) -> bool:
    if made.state is PodState.TERMINATED:
        return True
    wanted = {
        name
        for name, (kind, _) in world.specs.items()
        if kind in (ContainerType.REGULAR, ContainerType.SIDECAR)
    }
    return wanted <= {c.name for c in world.containers if c.running}


tapes = st.lists(st.integers(0, 5119), min_size=10, max_size=50)


@given(st.sampled_from(SHAPES), st.sampled_from(POLICIES), tapes)
def test_whatever_happens_the_order_holds_and_the_pod_comes_to_rest(
    scene: type[Scene], shape: str, policy: str, tape: list[int]
) -> None:
    """R-INIT-1, R-INIT-2, R-INIT-4, R-INIT-11, R-EPH-3"""
    world = World(scene, shape, policy)
    for number in tape:
        world.sync()
        choose(world, number)
    made = settle(world)
    if made.state is PodState.TERMINATED:
        assert world.pod.status.phase in ("Succeeded", "Failed")
        assert policy != "Always"
    else:
        assert world.pod.status.phase == "Running"


@example("i1 i2 / a b", "Never", [0, 0, 0, 0, 0, 0, 0, 27, 367, 472])
@example("v1+ v2+ / a", "OnFailure", [0, 0, 0, 0, 109, 0, 0, 0, 20, 0])
@given(st.sampled_from(SHAPES), st.sampled_from(POLICIES), tapes)
def test_whatever_was_lost_the_api_takes_every_status_and_what_ended_stays_so(
    scene: type[Scene], shape: str, policy: str, tape: list[int]
) -> None:
    """R-EPH-3, R-EPH-13, R-INIT-11: at any moment kubelet and runtime may lose what they had, and the API
    know only some of what there was."""
    world = World(scene, shape, policy)
    for number in tape:
        world.sync(writes=number % 3 > 0)
        if number % 11 == 10:
            world.wipe(number % 2 > 0)
        else:
            choose(world, number)
    before = ended_ephemeral(world.written)
    made = settle(world)
    assert before <= ended_ephemeral(world.written)
    expected = ("Succeeded", "Failed") if made.state is PodState.TERMINATED else ("Running",)
    assert world.pod.status.phase in expected


def ended_ephemeral(status: PodStatus) -> set[str]:
    return {c.name for c in status.ephemeral_container_statuses if c.state.terminated}


ENDERS = [
    ("a", "a"),
    ("i1 / a b", "b"),
    ("i1 i2 / a", "i2"),
    ("i1 s1* i2 / a", "s1"),
    ("s1* i1 / a / e", "a"),
]


@given(st.sampled_from(ENDERS), st.sampled_from(POLICIES), tapes)
def test_a_round_begins_anew_whatever_happens(
    scene: type[Scene], shape_and_ender: tuple[str, str], policy: str, tape: list[int]
) -> None:
    """R-INIT-11: nothing of an earlier round runs beside the new one, which begins at the first container."""
    shape, ender = shape_and_ender
    world = World(scene, shape, policy, ender)
    for number in tape:
        world.sync()
        choose(world, number)
    made = settle(world)
    if made.state is PodState.TERMINATED:
        assert world.pod.status.phase in ("Succeeded", "Failed")
    else:
        assert world.pod.status.phase == "Running"
        rounds = {c.round for c in world.containers if c.running and c.type is not ContainerType.EPHEMERAL}
        assert len(rounds) == 1


def starting(world: World) -> set[str]:
    return {action.name for action in world.in_flight if isinstance(action, StartContainer)}


@given(st.sampled_from(SHAPES), st.sampled_from(POLICIES), tapes, tapes)
def test_a_deleted_pod_always_goes_and_starts_nothing_more(
    scene: type[Scene], shape: str, policy: str, tape: list[int], later: list[int]
) -> None:
    """R-INIT-11"""
    world = World(scene, shape, policy)
    for number in tape:
        world.sync()
        choose(world, number)
    world.pod.metadata.deletion_timestamp = rfc3339(world.now)
    # What was already on its way may still start; nothing that is planned from here on.
    late = starting(world)
    for number in later:
        made = world.sync()
        assert not any(isinstance(a, StartContainer | CreateSandbox) for a in made.actions)
        choose(world, number)
        if world.finished:
            break
    settle(world)
    assert world.finished and late >= starting(world)


@given(st.sampled_from(SHAPES), st.integers(1, 12))
def test_failures_are_tried_again_with_growing_delays(scene: type[Scene], shape: str, failures: int) -> None:
    """R-INIT-2"""
    world = World(scene, shape, "Always")
    first = next(c for c in (*world.pod.spec.init_containers, *world.pod.spec.containers)).name
    starts: list[datetime] = []
    while len(starts) <= failures:
        made = world.sync()
        for action in list(world.in_flight):
            world.apply(action)
            if isinstance(action, StartContainer) and action.name == first:
                starts.append(world.now)
                newest = next(c for c in reversed(world.containers) if c.name == first)
                world.exit(newest.id, 1)
        if not made.actions:
            assert made.wake_at
            world.now = made.wake_at
    delays = [(later - earlier).total_seconds() for earlier, later in pairwise(starts)]
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300][:failures]


OWN = [None, "Always", "OnFailure", "Never"]


def outcome_of(policy: str, code: int) -> str:
    """How one container ends for good whose first run ends with `code` and every later one well."""
    if policy == "Always":
        return "Running"
    return "Failed" if code and policy == "Never" else "Succeeded"


def live(world: World, codes: dict[str, int], crash_at: int, done: int) -> int:
    """Containers end as `codes` say, once, and well afterwards; the kubelet crashes once, at a step. Returns
    how many steps it took."""
    for step in range(60):
        made = world.sync()
        if step == crash_at:
            world.crash(done)
            continue
        if not world.in_flight and not made.wake_at and at_peace(world, made):
            return step + 1
        for action in list(world.in_flight):
            world.apply(action)
        for container in [c for c in world.containers if c.running]:
            first = is_first_run(world, container)
            if first or not runs_on(world, container):
                world.exit(container.id, codes[container.name] if first else 0)
        if not made.actions and made.wake_at:
            world.now = made.wake_at
    raise AssertionError("never comes to rest")


def is_first_run(world: World, container: ObservedContainer) -> bool:
    return next(c.id for c in world.started if c.name == container.name) == container.id


def runs_on(world: World, container: ObservedContainer) -> bool:
    kind, spec = world.specs[container.name]
    return kind is ContainerType.REGULAR and policy_of(world, spec) == "Always"


def policy_of(world: World, spec: Container | EphemeralContainer) -> str:
    return spec.restart_policy or world.pod.spec.restart_policy


def at_peace(world: World, made: Plan) -> bool:
    running = [c for c in world.containers if c.running]
    lasting = [c for c in running if runs_on(world, c) and not is_first_run(world, c)]
    return made.state is PodState.TERMINATED or (bool(lasting) and running == lasting)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("own_of_init", [None, "OnFailure", "Never"])
@pytest.mark.parametrize("own_of_app", OWN)
@pytest.mark.parametrize("codes", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_every_policy_with_every_outcome_and_a_crash_at_every_step(
    scene: type[Scene], policy: str, own_of_init: str | None, own_of_app: str | None, codes: tuple[int, int]
) -> None:
    """R-INIT-2, R-INIT-11: the pod comes to the same end wherever the kubelet was lost."""
    code_of_init, code_of_app = codes
    expected = outcome_of(own_of_app or policy, code_of_app)
    if code_of_init and (own_of_init or policy) == "Never":
        expected = "Failed"

    def steps(crash_at: int, done: int) -> int:
        world = World(scene, "i / a", policy)
        world.pod.spec.init_containers[0].restart_policy = own_of_init
        world.pod.spec.containers[0].restart_policy = own_of_app
        taken = live(world, {"i": code_of_init, "a": code_of_app}, crash_at, done)
        assert world.pod.status.phase == expected, (crash_at, done)
        assert world.started[0].name == "i"
        return taken

    for crash_at in range(steps(-1, 0)):
        for done in (0, 0x1FF) if crash_at % 2 else (0, 0x0FF):
            steps(crash_at, done)
