"""Pulls that are under way: one for all who want the same image with the same credentials, and for as long as
somebody does.

wanted ▸ shared with one that is under way, or waits its turn ▸ pulled with each credential until one is taken
    ▸ nobody wants it any more, or it gets on no longer: cancelled, and the runtime stops pulling
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.config import NO_PROGRESS_FOR
from podling.kubelet.pulling.pull_deadline import until_stuck
from podling.model.time import Clock


class Pulled(NamedTuple):
    """`credential` is the one that was taken; `took` does not count the wait for a turn."""

    image: str
    credential: pb.AuthConfig | None
    took: timedelta


class _UnderWay(msgspec.Struct, eq=False):
    """`wanted` by so many."""

    task: asyncio.Task[None]
    outcome: asyncio.Future[Pulled]
    wanted: int = 0


class Pulls:
    """`tasks` owns them: one goes on for the others when the pod that began it is gone."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        at_once: int = 0,
        deadline: timedelta = NO_PROGRESS_FOR,
    ) -> None:
        """`at_once` limits them, 0: not at all; one that makes no progress for `deadline` is given up."""
        self._runtime = runtime
        self._clock = clock
        self._tasks = tasks
        self._turns = asyncio.Semaphore(at_once) if at_once else contextlib.nullcontext()
        self._deadline = deadline
        self._under_way: dict[tuple[str, bytes], _UnderWay] = {}

    async def pull(
        self, reference: str, credentials: Sequence[pb.AuthConfig], sandbox: pb.PodSandboxConfig | None
    ) -> Pulled:
        """Raises RuntimeFault. Whoever is cancelled here wants the image no more."""
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
                # From here on it is nobody's: whoever comes before it has ended begins another.
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
                pulled = await self._try_credentials(reference, credentials, sandbox)
        except RuntimeFault as fault:
            outcome.set_exception(fault)
            # Whoever waited may be gone; the fault was still seen.
            outcome.exception()
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        else:
            outcome.set_result(pulled)

    async def _try_credentials(
        self, reference: str, credentials: Sequence[pb.AuthConfig], sandbox: pb.PodSandboxConfig | None
    ) -> Pulled:
        began = self._clock.now()
        for auth in credentials[:-1]:
            try:
                image = await self._pull(reference, auth, sandbox)
            except RuntimeFault:
                continue
            return Pulled(image, auth, self._clock.now() - began)
        last = credentials[-1] if credentials else None
        image = await self._pull(reference, last, sandbox)
        return Pulled(image, last, self._clock.now() - began)

    async def _pull(
        self, reference: str, auth: pb.AuthConfig | None, sandbox: pb.PodSandboxConfig | None
    ) -> str:
        pull = self._runtime.pull_image(reference, auth, sandbox)
        return await until_stuck(self._runtime, reference, pull, self._deadline)
