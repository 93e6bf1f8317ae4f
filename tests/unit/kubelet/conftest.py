"""Pods and what is observed of them, each written in a line, so that the tests of the planner read as tables.

A pod is `init containers / app containers / ephemeral containers`: `v1+ i1 s1* i2 / a b / e1 e2>a`, where `+`
marks a volume container, `*` a sidecar and `>` a target. What is observed is a list of instances, oldest
first: `i1=exit1~3@20 a=run`:

    a=run a=created a=unknown a=exit0    its state, with its exit code
    ~3                                   three failures in a row came before it
    @20                                  it finished (or, running, started) 20 seconds ago
    ^                                    it lives in the sandbox before the newest
    !                                    it was made from another image

Actions in flight are `create-sandbox start:NAME stop:ID(POD_GRACE)`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.kubelet.files.tree import remove
from podling.kubelet.plan.restart import definition_hash
from podling.kubelet.pod.actions import (
    Action,
    CreateSandbox,
    Finish,
    Plan,
    PreStop,
    RecordInitialized,
    RemoveContainer,
    RemoveSandbox,
    ResizePod,
    StartContainer,
    StopContainer,
    StopSandbox,
)
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.observed import (
    ContainerState,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    StartFailure,
)
from podling.model.rules.resources import with_volume_containers
from podling.model.time import SystemClock
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.model.types.volume import Volume
from podling.storage.memory import MemoryStorage


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """Removed here: some of these tests make trees deeper than pytest can remove."""
    yield tmp_path
    remove(tmp_path)


async def nowhere(*_: Any) -> Any:
    raise AssertionError("there are no nodes")


Clients = tuple[Client, Client]


@pytest.fixture
async def clients() -> AsyncIterator[tuple[Client, Client]]:
    """Of the node n1, which may do what nodes may, and of an administrator."""
    storage = MemoryStorage()
    server = ApiServer.build(storage, KINDS, clock=SystemClock(), connector=nowhere)
    await server.start()
    await server.have_default_roles()
    users = User("system:node:n1", ("system:nodes", AUTHENTICATED)), User("root", (MASTERS, AUTHENTICATED))
    node, root = (Client(LocalTransport(server.handle, user)) for user in users)
    await node.create(Node(metadata=ObjectMeta(name="n1", labels={"zone": "a"})))
    yield node, root
    server.close()
    await storage.close()


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_INSTANCE = re.compile(r"(\w+)=(run|exit|created|unknown)(\d*)(?:~(\d+))?(?:@(\d+))?(\^?)(!?)")
_IN_FLIGHT = re.compile(r"create-sandbox|start:(\w+)|stop:((\w+)-\d+)\((\d+)\)")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def make_pod(text: str, restart: str = "Always", **spec: Any) -> Pod:
    init, apps, ephemeral = [*text.split("/"), "", ""][:3] if "/" in text else ["", text, ""]
    volumes = [word.rstrip("+") for word in init.split() if word.endswith("+")]
    made = Pod(
        metadata=ObjectMeta(name="p", namespace="ns", uid="u1", generation=1),
        spec=PodSpec(
            volumes=[Volume(name=name, container=_container(name)) for name in volumes],
            init_containers=[_container(word) for word in init.split() if not word.endswith("+")],
            containers=[_container(word) for word in apps.split()],
            ephemeral_containers=[_ephemeral(word) for word in ephemeral.split()],
            restart_policy=restart,
            **spec,
        ),
    )
    return with_volume_containers(made)


def _container(word: str) -> Container:
    name = word.rstrip("*")
    return Container(name=name, image=f"image-{name}", restart_policy="Always" if word != name else None)


def _ephemeral(word: str) -> EphemeralContainer:
    name, _, target = word.partition(">")
    return EphemeralContainer(name=name, image=f"image-{name}", target_container_name=target)


def make_observed(
    pod: Pod, text: str = "", sandbox: str = "ready", in_flight: str = "", **known: Any
) -> ObservedPod:
    """`sandbox`: none, ready, dead (its network not torn down yet) or stopped."""
    sandboxes = _sandboxes(sandbox, old="^" in text)
    attempts: dict[str, int] = {}
    containers = []
    for index, word in enumerate(text.split()):
        name = word.partition("=")[0]
        containers.append(_instance(pod, word, sandboxes, attempts.get(name, 0), index))
        attempts[name] = attempts.get(name, 0) + 1
    return ObservedPod(
        sandboxes=sandboxes,
        containers=tuple(reversed(containers)),
        in_flight=make_in_flight(in_flight),
        **known,
    )


def make_in_flight(text: str) -> frozenset[Action]:
    return frozenset(_in_flight(word) for word in text.split())


def _in_flight(word: str) -> Action:
    match = _IN_FLIGHT.fullmatch(word)
    assert match, f"not an action in flight: {word}"
    started, id_, stopped, grace = match.groups()
    if started:
        return StartContainer(started, ContainerType.REGULAR)
    if stopped:
        return StopContainer(id_, stopped, int(grace), "Terminating", "", pod_grace=int(grace))
    return CreateSandbox(0)


def _sandboxes(state: str, old: bool) -> tuple[ObservedSandbox, ...]:
    if state == "none":
        return ()
    newest = ObservedSandbox(
        "new",
        1 if old else 0,
        ago(500),
        ready=state == "ready",
        ips=("10.0.0.7",),
        stopped=state == "stopped",
    )
    return (newest, ObservedSandbox("old", 0, ago(5000), ready=False, stopped=True)) if old else (newest,)


def _instance(
    pod: Pod, word: str, sandboxes: tuple[ObservedSandbox, ...], attempt: int, index: int
) -> ObservedContainer:
    match = _INSTANCE.fullmatch(word)
    assert match, f"not an instance: {word}"
    name, state, code, crashes, seconds, old, other = match.groups()
    specs = {c.name: (kind, c) for kind, c in all_containers(pod)}
    kind, spec = specs.get(name, (ContainerType.EPHEMERAL, EphemeralContainer(name=name)))
    moment = ago(float(seconds or 1))
    states = {"run": "RUNNING", "exit": "EXITED", "created": "CREATED", "unknown": "UNKNOWN"}
    made = ObservedContainer(
        id=f"{name}-{attempt}",
        name=name,
        type=kind,
        sandbox_id="old" if old else "new",
        attempt=attempt,
        state=ContainerState[states[state]],
        created_at=ago(1000 - index),
        image=spec.image,
        image_id=f"sha256:{name}",
        hash="changed" if other else definition_hash(spec),
        crashes=int(crashes or 0),
    )
    if state == "exit":
        reason = "Error" if int(code) else "Completed"
        ran = moment - timedelta(seconds=1)
        return replace(made, started_at=ran, finished_at=moment, exit_code=int(code), reason=reason)
    return replace(made, started_at=moment) if state == "run" else made


def say(action: Action) -> str:
    match action:
        case CreateSandbox(attempt):
            return f"sandbox#{attempt}"
        case StopSandbox(sandbox_id):
            return f"stop-sandbox {sandbox_id}"
        case RemoveSandbox(sandbox_id):
            return f"remove-sandbox {sandbox_id}"
        case StartContainer(name, _, attempt, crashes, target):
            return (
                f"start {name}#{attempt}"
                + (f"~{crashes}" if crashes else "")
                + (f">{target}" if target else "")
            )
        case StopContainer(container_id, _, grace):
            return f"stop {container_id}({grace})"
        case PreStop(container_id, _, grace):
            return f"pre-stop {container_id}({grace})"
        case RemoveContainer(container_id):
            return f"remove {container_id}"
        case RecordInitialized():
            return "initialized"
        case ResizePod():
            return "resize"
        case Finish():
            return "finish"


def say_plan(plan: Plan) -> str:
    return ", ".join(say(action) for action in plan.actions)


def failure(reason: str, seconds: float = 1, count: int = 1, message: str = "no such thing") -> StartFailure:
    return StartFailure(reason, message, count, ago(seconds))


class Scene:
    """The words above, handed to tests as one fixture."""

    NOW = NOW
    ago = staticmethod(ago)
    pod: Callable[..., Pod] = staticmethod(make_pod)
    observed: Callable[..., ObservedPod] = staticmethod(make_observed)
    in_flight: Callable[[str], frozenset[Action]] = staticmethod(make_in_flight)
    failure: Callable[..., StartFailure] = staticmethod(failure)
    say = staticmethod(say_plan)


@pytest.fixture(scope="session")
def scene() -> type[Scene]:
    return Scene
