"""Running controllers and scheduler: in the process of the API server, or alone with a kubeconfig."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client.metrics_core import Metric

from podling.assemble import accounts, alone
from podling.assemble.health import answering
from podling.assemble.policy_types import type_check
from podling.assemble.process import Report
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers, until
from podling.client.leader import NAMESPACE, Election, LostError
from podling.controllers import all as controllers
from podling.controllers.addresses import REPAIRED
from podling.controllers.api_services import FaultOf
from podling.controllers.certificates_rules import LONGEST, CertificateAuthority
from podling.controllers.controller import Accounts, Controller, queue_metrics
from podling.controllers.controller import run as run_controller
from podling.controllers.kubernetes_service import Servers
from podling.controllers.load_balancers import RECORDER, Taken
from podling.controllers.node_certificates import Others
from podling.controllers.node_zones import Limits as Limits
from podling.controllers.nodes import USUAL
from podling.controllers.nodes import Monitoring as Monitoring
from podling.machine.pki import KeyPair
from podling.machine.start import StartError
from podling.model.rules.addresses import subnets
from podling.model.time import Clock, SystemClock
from podling.model.types.core import Namespace
from podling.model.types.rbac import MASTERS
from podling.process.waits import woken
from podling.scheduler.loop import SCHEDULER_NAME, Scheduler

SCHEDULER, CONTROLLERS = "system:kube-scheduler", "system:kube-controller-manager"
"""The users of scheduler and controllers."""
CONTROLLERS_NAME = "kube-controller-manager"
SCHEDULER_LEASE = "kube-scheduler"
CLUSTER_CIDR = "10.64.0.0/14"
"""The pods' subnets of all nodes."""
LONGEST_START = 30.0
"""Seconds after which the second wave of controllers starts even though the node is not ready."""

log = logging.getLogger(__name__)

Measured = Callable[[], Iterable[Metric]]


async def run_scheduler(client: Client, clock: Clock, port: int = 0, *, elects: bool = False) -> None:
    """With its health on `port`, if it is not 0. If it `elects`, it schedules while it leads. Raises
    StartError once it leads no more."""
    informers = Informers(client)
    events = EventRecorder(client, clock, SCHEDULER_NAME)
    scheduler = Scheduler(client, informers, events, clock)

    def reading() -> str:
        return "" if informers.are_synced() else "objects have not been read yet"

    checks = {
        "healthz": {"ping": _fine},
        "livez": {"ping": _fine},
        "readyz": {"shutdown": _fine, "sched-handler-sync": reading},
    }
    async with answering("kube-scheduler", port, checks, clock.now()), asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        tasks.create_task(events.run())
        if elects:
            await _led(Election(client, SCHEDULER_LEASE, clock, events), scheduler.run)
        else:
            tasks.create_task(scheduler.run())


async def _led(election: Election, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Raises StartError when it leads no more: whoever starts it anew has it ask again."""
    try:
        await election.run(act)
    except* LostError as lost:
        raise StartError(f"leader election lost: {lost.exceptions[0]}") from lost


async def run_controllers(
    client: Client,
    account: Accounts,
    ca: str,
    authority: CertificateAuthority | None,
    clock: Clock,
    port: int = 0,
    *,
    elects: bool = False,
    monitoring: Monitoring = USUAL,
) -> None:
    """All controllers but those that the API server runs itself (`run_own`). They read as `client`. Their
    health is on `port`, if it is not 0. If they `elect` a leader, they act while they lead. How nodes are
    watched is `monitoring`. Raises StartError once they lead no more."""
    informers = Informers(client)
    events = EventRecorder(client, clock, CONTROLLERS_NAME)
    rest = controllers.rest(account, informers, events, clock, authority, type_check)
    rest += controllers.workloads(account, informers, events, clock)
    every = [*controllers.first(account, informers, events, clock, ca, monitoring), *rest]
    checks = {"healthz": {controller.name: _fine for controller in every}}
    async with answering(CONTROLLERS_NAME, port, checks, clock.now()), asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        tasks.create_task(events.run())

        async def act() -> None:
            async with asyncio.TaskGroup() as acting:
                _begin(every, acting)

        if elects:
            await _led(Election(client, CONTROLLERS_NAME, clock, events), act)
        else:
            await act()


def _fine() -> str:
    return ""


async def run_own(
    client: Client,
    servers: Servers,
    port: int,
    cidr: str,
    clock: Clock,
    *,
    url: str,
    ca: str,
    fault_of: FaultOf,
    believed: Mapping[str, Sequence[str]],
) -> None:
    """The controllers that kube-apiserver runs in itself. Pods reach the API servers at `port` of `servers`;
    services get their addresses from `cidr`. Machines that join reach this one at `url`, and trust `ca`
    (PEM). `fault_of` asks the servers behind APIServices, which are told who is `believed`."""
    informers, repaired = Informers(client), EventRecorder(client, clock, REPAIRED)
    own = controllers.of_the_server(client, informers, clock, servers, port, cidr)
    rest = controllers.rest_of_the_server(client, informers, repaired, clock, fault_of, believed, url, ca)
    every = [*own, *rest]
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        _begin(every, tasks)
        tasks.create_task(repaired.run())


async def run_all(
    client: Callable[..., Client],
    informers: Informers,
    ca: str,
    authority: CertificateAuthority | None,
    servers: Servers,
    port: int,
    cidr: str,
    clock: Clock,
    *,
    url: str,
    started: asyncio.Event,
    fault_of: FaultOf,
    believed: Mapping[str, Sequence[str]],
    measure: Callable[[Measured], None],
    taken: Taken | None = None,
    workloads: bool = True,
    cluster_cidr: str = CLUSTER_CIDR,
    server_names: Sequence[str] = (),
    elects: bool = False,
) -> None:
    """All controllers and the scheduler, each as who it is in Kubernetes: `client` makes the client of a user
    and his groups. The `informers` are for others, too. Controllers that no pod waits for start once the node
    has `started` (docs/decisions/013). Without `taken` no service gets a load balancer, without
    `workloads` no Deployment pods. Machines that join reach the API server at `url`;
    nodes that say no subnet of their pods get one of `cluster_cidr`; `server_names` are those of the API
    server's certificate. If they `elect`, the scheduler and the controllers that are not the API server's own
    act while they lead."""
    server, reading, scheduling = client(accounts.API_SERVER, MASTERS), client(CONTROLLERS), client(SCHEDULER)
    account = partial(accounts.in_process, client)
    queues: dict[str, Sequence[Controller[Any]]] = {}
    schedulers: dict[str, Scheduler] = {}
    """Who acts now, as far as it is measured."""

    async def keep() -> None:
        own = controllers.of_the_server(server, informers, clock, servers, port, cidr)
        async with asyncio.TaskGroup() as tasks:
            await informers.start(tasks)
            _begin(own, tasks)
            await woken(started, LONGEST_START)
            repaired = EventRecorder(server, clock, REPAIRED)
            rest = controllers.rest_of_the_server(
                server, informers, repaired, clock, fault_of, believed, url, ca, measures=True
            )
            queues[accounts.API_SERVER] = [*own, *rest]
            await informers.start(tasks)
            _begin(rest, tasks)
            tasks.create_task(repaired.run())

    async def schedule(informers: Informers) -> None:
        events = EventRecorder(scheduling, clock, SCHEDULER_NAME)
        scheduler = Scheduler(scheduling, informers, events, clock)
        schedulers[SCHEDULER_LEASE] = scheduler
        async with asyncio.TaskGroup() as tasks:
            await informers.start(tasks)
            tasks.create_task(events.run())
            tasks.create_task(scheduler.run())

    async def control(informers: Informers) -> None:
        told = EventRecorder(reading, clock, CONTROLLERS_NAME)
        first = controllers.first(account, informers, told, clock, ca)
        async with asyncio.TaskGroup() as tasks:
            await informers.start(tasks)
            _begin(first, tasks)
            tasks.create_task(told.run())
            await woken(started, LONGEST_START)
            rest = controllers.rest(account, informers, told, clock, authority, type_check)
            others = Others(server_names, subnets(cidr))
            rest += controllers.of_nodes(account, server, informers, told, cluster_cidr, cidr, others)
            if workloads:
                rest += controllers.workloads(account, informers, told, clock)
            if taken is not None:
                balancing = EventRecorder(account(RECORDER), clock, RECORDER)
                rest.append(controllers.load_balancers(account, informers, balancing, taken))
                tasks.create_task(balancing.run())
            queues[CONTROLLERS_NAME] = [*first, *rest]
            await informers.start(tasks)
            _begin(rest, tasks)

    async def in_terms(
        lease: str, asking: Client, act: Callable[[Informers], Coroutine[Any, Any, None]]
    ) -> None:
        """Act with what is read anew whenever this process leads: what it knew before may have changed."""
        await until(server, Namespace, "", NAMESPACE)
        events = EventRecorder(asking, clock, lease)
        task = asyncio.current_task()
        assert task is not None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(events.run())
            # To be cancelled just when the Lease is lost raises the loss alone.
            while not task.cancelling():
                try:
                    await Election(asking, lease, clock, events).run(lambda: act(Informers(asking)))
                except* LostError as lost:
                    log.warning("leader election lost: %s", lost.exceptions[0])
                    queues.pop(lease, None)
                    schedulers.pop(lease, None)
            raise asyncio.CancelledError

    measure(lambda: queue_metrics(chain(*queues.values())))
    measure(lambda: chain.from_iterable(one.metrics() for one in schedulers.values()))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(keep())
        if elects:
            tasks.create_task(in_terms(SCHEDULER_LEASE, scheduling, schedule))
            tasks.create_task(in_terms(CONTROLLERS_NAME, reading, control))
        else:
            tasks.create_task(schedule(informers))
            tasks.create_task(control(informers))


def _begin(every: Iterable[Controller[Any]], tasks: asyncio.TaskGroup) -> None:
    for controller in every:
        tasks.create_task(run_controller(controller, controllers.WORKERS.get(controller.name, 1)))


def schedule(kubeconfig: Path, port: int, report: Report, *, elects: bool) -> None:
    """Schedule until told to stop, if it `elects` while it leads, with health on `port`, if it is not 0.
    Raises StartError."""
    access = alone.read_access(kubeconfig)
    report(f"Scheduling for {access.server}")
    alone.run(access, lambda client: run_scheduler(client, SystemClock(), port, elects=elects))


class Signing(msgspec.Struct, frozen=True):
    """The authority that signs certificates, and how long one lasts for which no shorter time is asked."""

    authority: KeyPair
    longest: timedelta = LONGEST


def control(
    kubeconfig: Path,
    root_ca: Path | None,
    signing: Signing | None,
    port: int,
    report: Report,
    *,
    accounts_each: bool,
    elects: bool,
    monitoring: Monitoring = USUAL,
) -> None:
    """Run the controllers until told to stop, if they `elect` one while they lead, with health on `port`,
    if it is not 0; `accounts_each` with an account of its own or all as the user of the kubeconfig. Pods
    trust `root_ca` (PEM); without one, the authority that this client trusts. Certificates are signed with
    `signing`, if any. How nodes are watched is `monitoring`. Raises StartError."""
    access, clock = alone.read_access(kubeconfig), SystemClock()
    ca = root_ca.read_text() if root_ca else access.certificate_authority.decode()
    authority = read_authority(signing) if signing else None
    report(f"Controlling for {access.server}")

    async def act(client: Client) -> None:
        async with AsyncExitStack() as open_until_end:

            def account(name: str) -> Client:
                if not accounts_each:
                    return client
                made = accounts.elsewhere(access, client, name, clock)
                open_until_end.push_async_callback(made.close)
                return made

            await run_controllers(
                client, account, ca, authority, clock, port, elects=elects, monitoring=monitoring
            )

    alone.run(access, act)


def read_authority(signing: Signing) -> CertificateAuthority:
    """Raises StartError."""
    certificate, key = signing.authority.certificate, signing.authority.key
    try:
        return CertificateAuthority.of_pem(certificate.read_bytes(), key.read_bytes(), signing.longest)
    except (OSError, ValueError, TypeError) as error:
        # TypeError: the key has a password.
        raise StartError(f"{certificate} and {key} can sign nothing: {error}") from error
