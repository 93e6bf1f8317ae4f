"""Running controllers and scheduler: in the process of the API server, or alone with a kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client.metrics_core import Metric

from podling.assemble import process
from podling.assemble.process import Report
from podling.client import kubeconfig as kubeconfigs
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.client.kubeconfig import Access
from podling.controllers import all as controllers
from podling.controllers.addresses import REPAIRED
from podling.controllers.certificates_rules import LONGEST, CertificateAuthority
from podling.controllers.controller import Controller, queue_metrics
from podling.controllers.controller import run as run_controller
from podling.machine.pki import KeyPair
from podling.machine.start import StartError
from podling.model.time import Clock, SystemClock
from podling.process.waits import woken
from podling.scheduler.loop import SCHEDULER_NAME, Scheduler

SCHEDULER, CONTROLLERS = "system:kube-scheduler", "system:kube-controller-manager"
"""The users of scheduler and controllers."""
CONTROLLERS_NAME = "kube-controller-manager"
LONGEST_START = 30.0
"""Seconds after which the second wave of controllers starts even though the node is not ready."""

Measured = Callable[[], Iterable[Metric]]


async def run_scheduler(client: Client, clock: Clock) -> None:
    informers = Informers(client)
    events = EventRecorder(client, clock, SCHEDULER_NAME)
    scheduler = Scheduler(client, informers, events, clock)
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        tasks.create_task(events.run())
        tasks.create_task(scheduler.run())


async def run_controllers(
    client: Client, ca: str, authority: CertificateAuthority | None, clock: Clock
) -> None:
    """All controllers but those that the API server runs itself (`run_own`)."""
    informers = Informers(client)
    events = EventRecorder(client, clock, CONTROLLERS_NAME)
    rest = controllers.rest(client, informers, events, clock, authority)
    every = [*controllers.first(client, informers, ca), *rest]
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        _begin(every, tasks)
        tasks.create_task(events.run())


async def run_own(client: Client, host: str, port: int, cidr: str, clock: Clock) -> None:
    """The controllers that kube-apiserver runs in itself. Pods reach the API server at `host` and `port`;
    services get their addresses from `cidr`."""
    informers, repaired = Informers(client), EventRecorder(client, clock, REPAIRED)
    own = controllers.of_the_server(client, informers, clock, host, port, cidr)
    every = [*own, *controllers.rest_of_the_server(client, informers, repaired, clock)]
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        _begin(every, tasks)
        tasks.create_task(repaired.run())


async def run_all(
    client: Client,
    scheduling: Client,
    ca: str,
    authority: CertificateAuthority | None,
    host: str,
    port: int,
    cidr: str,
    clock: Clock,
    *,
    started: asyncio.Event,
    measure: Callable[[Measured], None],
) -> None:
    """All controllers and the scheduler, on one set of informers. `scheduling` is the scheduler's client.
    Controllers that no pod waits for start once the node has `started` (docs/decisions/013)."""
    informers = Informers(client)
    events = EventRecorder(scheduling, clock, SCHEDULER_NAME)
    own = controllers.of_the_server(client, informers, clock, host, port, cidr)
    first = [*own, *controllers.first(client, informers, ca)]
    scheduler = Scheduler(scheduling, informers, events, clock)
    measure(scheduler.metrics)
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        _begin(first, tasks)
        tasks.create_task(events.run())
        tasks.create_task(scheduler.run())
        await woken(started, LONGEST_START)
        told = EventRecorder(client, clock, CONTROLLERS_NAME)
        repaired = EventRecorder(client, clock, REPAIRED)
        rest = [
            *controllers.rest_of_the_server(client, informers, repaired, clock),
            *controllers.rest(client, informers, told, clock, authority),
        ]
        measure(lambda: queue_metrics([*first, *rest]))
        await informers.start(tasks)
        _begin(rest, tasks)
        tasks.create_task(told.run())
        tasks.create_task(repaired.run())


def _begin(every: Iterable[Controller[Any]], tasks: asyncio.TaskGroup) -> None:
    for controller in every:
        tasks.create_task(run_controller(controller))


def schedule(kubeconfig: Path, report: Report) -> None:
    """Schedule until told to stop. Raises StartError."""
    access = _access(kubeconfig)
    report(f"Scheduling for {access.server}")
    _run(access, lambda client: run_scheduler(client, SystemClock()))


class Signing(msgspec.Struct, frozen=True):
    """The authority that signs certificates, and how long one lasts for which no shorter time is asked."""

    authority: KeyPair
    longest: timedelta = LONGEST


def control(kubeconfig: Path, root_ca: Path | None, signing: Signing | None, report: Report) -> None:
    """Run the controllers until told to stop. Pods trust `root_ca` (PEM); without one, the authority that
    this client trusts. Certificates are signed with `signing`, if any. Raises StartError."""
    access = _access(kubeconfig)
    ca = root_ca.read_text() if root_ca else access.certificate_authority.decode()
    authority = read_authority(signing) if signing else None
    report(f"Controlling for {access.server}")
    _run(access, lambda client: run_controllers(client, ca, authority, SystemClock()))


def read_authority(signing: Signing) -> CertificateAuthority:
    """Raises StartError."""
    certificate, key = signing.authority.certificate, signing.authority.key
    try:
        return CertificateAuthority.of_pem(certificate.read_bytes(), key.read_bytes(), signing.longest)
    except (OSError, ValueError, TypeError) as error:
        # TypeError: the key has a password.
        raise StartError(f"{certificate} and {key} can sign nothing: {error}") from error


def _access(file: Path) -> Access:
    try:
        return kubeconfigs.read(file)
    except kubeconfigs.KubeconfigError as error:
        raise StartError(str(error)) from error


def _run(access: Access, act: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main(told_to_stop: asyncio.Event) -> None:
        client = Client(access.transport())
        try:
            async with asyncio.TaskGroup() as tasks:
                acting = tasks.create_task(act(client))
                process.started()
                await told_to_stop.wait()
                acting.cancel()
        finally:
            await client.close()

    process.run(main)
