"""Image pulls in progress, shared by all who want the same image with the same credentials.

wanted ▸ joins a pull in progress, or waits for its turn ▸ pulled with each credential until one works
    ▸ nobody wants it any more, or no progress: cancelled, and the runtime stops pulling

A registry that accepts a connection and sends nothing would hold up a pull for ever: CRI has no deadline for
pulls, and not every runtime has its own (containerd has since 1.7). So the progress of the runtime's pulls is
checked. The runtime reports only their sum: a pull that hangs beside one that progresses is given up after
that one has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import NamedTuple, NoReturn

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import CANCELLED, Runtime, RuntimeFault
from podling.kubelet.config import NO_PROGRESS_FOR
from podling.kubelet.images.reference import place_of
from podling.kubelet.pod.containers import StartError, rpc_text
from podling.model.time import Clock, go_duration

NAMED = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}
LOOKS = 4
"""How often progress is checked within the deadline; without change at all of them the pull is given up."""


def pull_error(image: str, fault: RuntimeFault) -> StartError:
    """The waiting reason and message of a failed pull, as Kubernetes' evalCRIPullErr."""
    text = pull_text(fault)
    for reason, cause in NAMED.items():
        if text.startswith(reason):
            details = text.removeprefix(reason)
            return StartError(reason, f"image pull failed for {image} because {cause}{details}")
    return StartError("ErrImagePull", text)


def pull_text(fault: RuntimeFault) -> str:
    """The fault's text; without the code if that is UNKNOWN."""
    return fault.message if fault.code == "UNKNOWN" else rpc_text(fault)


def stuck(image: str, deadline: timedelta) -> RuntimeFault:
    """The fault of a pull that made no progress for `deadline`."""
    what = f"pulling {image} made no progress for {go_duration(deadline)}"
    advice = f"{_silent(image)}, or raise --image-pull-progress-deadline"
    return RuntimeFault("DEADLINE_EXCEEDED", f"{what}: {advice}")


def given_up_by_runtime(image: str) -> RuntimeFault:
    """The fault of a pull that the runtime cancelled. Only its own deadline can be the cause."""
    what = f"the container runtime gave up pulling {image}, which made no progress"
    return RuntimeFault("DEADLINE_EXCEEDED", f"{what}: {_silent(image)}")


def _silent(image: str) -> str:
    registry = f"registry {place_of(image).registry}, or its mirror, does not answer or sends nothing"
    return f"{registry}; see whether this node can reach it"


async def until_stuck(runtime: Runtime, image: str, pull: Awaitable[str], deadline: timedelta) -> str:
    """The result of the pull. Raises RuntimeFault: the pull's own, or `stuck`."""

    async def watch(patience: asyncio.Timeout) -> NoReturn:
        seen, quiet = None, 0
        while True:
            await asyncio.sleep(deadline.total_seconds() / LOOKS)
            try:
                now = await runtime.pull_progress()
            except RuntimeFault:
                # If the runtime is away, the pull itself will fail.
                now = None
            quiet = quiet + 1 if now is not None and now == seen else 0
            seen = now
            if quiet >= LOOKS:
                patience.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as patience, asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(watch(patience))
            try:
                return await pull
            except RuntimeFault as fault:
                failed = fault
            finally:
                watching.cancel()
    except TimeoutError:
        raise stuck(image, deadline) from None
    raise given_up_by_runtime(image) if failed.code == CANCELLED else failed


class Pulled(NamedTuple):
    """`credential` is the one that was accepted; `took` does not include the wait for a turn."""

    image: str
    credential: pb.AuthConfig | None
    took: timedelta


class _UnderWay(msgspec.Struct, eq=False):
    """A pull in progress."""

    task: asyncio.Task[None]
    outcome: asyncio.Future[Pulled]
    wanted: int = 0
    """How many callers wait for it."""


class Pulls:
    """The pulls in progress. `tasks` owns them, so that a pull goes on for others when its first pod is
    gone."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        at_once: int = 0,
        deadline: timedelta = NO_PROGRESS_FOR,
    ) -> None:
        """`at_once` is maxParallelImagePulls, 0 for no limit. A pull without progress for `deadline` is given
        up."""
        self._runtime = runtime
        self._clock = clock
        self._tasks = tasks
        self._turns = asyncio.Semaphore(at_once) if at_once else nullcontext()
        self._deadline = deadline
        self._under_way: dict[tuple[str, bytes], _UnderWay] = {}

    async def pull(
        self, reference: str, credentials: Sequence[pb.AuthConfig], sandbox: pb.PodSandboxConfig | None
    ) -> Pulled:
        """Raises RuntimeFault. A pull is cancelled when all its callers are."""
        key = reference, b"".join(auth.SerializeToString(deterministic=True) for auth in credentials)
        pull = self._under_way.get(key)
        if pull is None:
            outcome: asyncio.Future[Pulled] = asyncio.get_running_loop().create_future()
            task = self._tasks.create_task(self._run(outcome, reference, credentials, sandbox))
            pull = self._under_way[key] = _UnderWay(task, outcome)
        pull.wanted += 1
        try:
            return await asyncio.shield(pull.outcome)
        finally:
            pull.wanted -= 1
            if not pull.wanted:
                # Nobody joins a cancelled pull: a caller from now on begins another.
                self._under_way.pop(key, None)
                pull.task.cancel()

    async def _run(
        self,
        outcome: asyncio.Future[Pulled],
        reference: str,
        credentials: Sequence[pb.AuthConfig],
        sandbox: pb.PodSandboxConfig | None,
    ) -> None:
        try:
            async with self._turns:
                pulled = await self._pull(reference, credentials, sandbox)
        except RuntimeFault as fault:
            outcome.set_exception(fault)
            # Retrieved here, as asyncio complains of an exception that nobody retrieves.
            outcome.exception()
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        else:
            outcome.set_result(pulled)

    async def _pull(
        self, reference: str, credentials: Sequence[pb.AuthConfig], sandbox: pb.PodSandboxConfig | None
    ) -> Pulled:
        """With each credential until one works. Raises RuntimeFault: that of the last."""
        began = self._clock.now()
        left: list[pb.AuthConfig | None] = [*credentials] or [None]
        while True:
            auth = left.pop(0)
            pull = self._runtime.pull_image(reference, auth, sandbox)
            try:
                image = await until_stuck(self._runtime, reference, pull, self._deadline)
            except RuntimeFault:
                if not left:
                    raise
            else:
                return Pulled(image, auth, self._clock.now() - began)
