"""Storage and API server of a data directory, and the controllers and the scheduler beside them."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate
from msgspec.structs import replace

from podling.assemble.accounts import in_process
from podling.assemble.control_plane import (
    Plane,
    ServerSettings,
    control_plane,
    server_settings,
)
from podling.assemble.controllers import (
    CONTROLLERS,
    SCHEDULER,
    Measured,
    run_all,
    run_controllers,
    run_own,
    run_scheduler,
)
from podling.assemble.kubeconfigs import write_admin, write_parts
from podling.assemble.settle import LOOPBACK, AuditOptions, ServingOptions
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.informer import Informers, until
from podling.controllers.node_addresses import NodeAddresses
from podling.controllers.node_certificates import ServingApprover
from podling.controllers.nodes import NodeLifecycle
from podling.machine.instance import Instance
from podling.machine.pki import LEAF_LIFETIME, RENEW_WITHIN, Authority, Term, renew_forever
from podling.machine.start import DamagedError, StartError
from podling.model.codec.json import from_data
from podling.model.gates import DEFAULT_GATES
from podling.model.time import SystemClock
from podling.model.types.coordination import Lease
from podling.model.types.core import ConfigMap, Namespace, ServiceAccount
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.service import Service
from podling.process.tls import connecting_context
from ports import free_port

Run = Callable[[Plane, str, int, list[Measured]], Coroutine[Any, Any, None]]

CLOCK = SystemClock()
CIDR = "10.96.0.0/16"
BRIEF = Term(timedelta(seconds=3), timedelta(seconds=1.5))
ROOM = {"cpu": "2", "memory": "4Gi", "pods": "10"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Instance:
    """Certificates are made once."""
    instance = Instance.at(tmp_path_factory.mktemp("data"))
    settings(instance, 0)
    return instance


def settings(instance: Instance, port: int, audit: str = "off") -> ServerSettings:
    authority = Authority(instance.pki_dir, CLOCK.now())
    write_admin(instance, port, authority)
    write_parts(instance, port, authority)
    return server_settings(instance, port, LOOPBACK, CIDR, authority, DEFAULT_GATES, AuditOptions(audit))


@pytest.mark.parametrize(("audit", "lines"), [("off", 0), ("", 1), ("{}/other.log", 1)])
async def test_the_admin_reaches_it_and_the_audit_log_is_where_it_should_be(
    data: Instance, tmp_path: Path, audit: str, lines: int
) -> None:
    chosen = settings(data, free_port(), audit.format(tmp_path))
    async with control_plane(chosen, CLOCK):
        client = Client(kubeconfig.read(data.kubeconfig).transport())
        await client.create(from_data({"metadata": {"generateName": "ns-"}}, Namespace))
        await client.close()
    file = tmp_path / "other.log" if audit else data.audit_log
    log = file.read_text() if file.exists() else ""
    assert log.count('"username":"kubernetes-admin"') == lines


async def test_a_port_that_is_taken_is_refused_and_nothing_is_left_open(data: Instance) -> None:
    with socket.create_server((LOOPBACK, free_port())) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1, port {port}"):
            async with control_plane(settings(data, port), CLOCK):
                raise AssertionError("it listens")
    async with control_plane(settings(data, port), CLOCK) as plane:
        assert (await plane.own_client().list(Pod)).items == []


async def test_objects_that_were_changed_are_refused(data: Instance, tmp_path: Path) -> None:
    damaged = Instance.at(tmp_path)
    damaged.database.write_bytes(b"nothing of a database" * 500)
    with pytest.raises(DamagedError):
        async with control_plane(settings(damaged, free_port()), CLOCK):
            raise AssertionError("it serves")


URL = "https://192.0.2.1:6443"


async def all_together(
    plane: Plane, ca: str, port: int, measured: list[Measured], *, elects: bool = False
) -> None:
    await run_all(
        plane.client,
        Informers(plane.client(CONTROLLERS)),
        ca,
        None,
        plane.servers,
        port,
        CIDR,
        CLOCK,
        url=URL,
        started=asyncio.Event(),
        fault_of=plane.fault_of,
        believed={},
        measure=measured.append,
        elects=elects,
    )


def health_of(port: int) -> str:
    tls = connecting_context(verify=False)
    with urlopen(f"https://127.0.0.1:{port}/healthz?verbose", context=tls, timeout=10) as answer:
        said: bytes = answer.read()
        return said.decode()


async def each_alone(plane: Plane, ca: str, port: int, measured: list[Measured]) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            run_own(
                plane.own_client(),
                plane.servers,
                port,
                CIDR,
                CLOCK,
                url=URL,
                ca=ca,
                fault_of=plane.fault_of,
                believed={},
            )
        )
        accounts = partial(in_process, plane.client)
        health = free_port()
        tasks.create_task(run_controllers(plane.client(CONTROLLERS), accounts, ca, None, CLOCK, health))
        tasks.create_task(run_scheduler(plane.client(SCHEDULER), CLOCK))
        await until(plane.own_client(), ServiceAccount, "default", "default")
        acting = await asyncio.to_thread(health_of, health)
        found = {*re.findall(r"\](\S+) ok", acting)}
        assert NodeLifecycle.name in found
        # Where they run beside podling's API server, something else gives subnets and approves servers.
        assert not found & {NodeAddresses.name, ServingApprover.name}


@pytest.mark.parametrize("run", [all_together, each_alone])
async def test_a_pod_can_be_made_and_gets_its_node(tmp_path: Path, data: Instance, run: Run) -> None:
    chosen = settings(data, free_port())
    measured: list[Measured] = []
    async with control_plane(chosen, CLOCK) as plane, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(plane, chosen.ca.read_text(), chosen.port, measured))
        own = plane.own_client()
        await until(own, ServiceAccount, "default", "default")
        await until(own, ConfigMap, "default", "kube-root-ca.crt")
        await until(own, Service, "default", "kubernetes")
        node = {"metadata": {"name": "n"}, "status": {"allocatable": ROOM}}
        await own.create(from_data(node, Node))
        spec = {"containers": [{"name": "a", "image": "i"}]}
        pod = await own.create(
            from_data({"metadata": {"generateName": "p-", "namespace": "default"}, "spec": spec}, Pod)
        )
        await until(own, Pod, "default", pod.metadata.name, lambda pod: pod.spec.node_name == "n")
        await own.delete(Node, "n")
        running.cancel()
    names = {metric.name for measure in measured for metric in measure()}
    assert run is each_alone or "scheduler_pending_pods" in names


async def test_who_leads_no_more_acts_again_once_it_leads_again(tmp_path: Path, data: Instance) -> None:
    """The process goes on meanwhile: pods run in it."""
    chosen = settings(data, free_port())
    async with control_plane(chosen, CLOCK) as plane, asyncio.TaskGroup() as tasks:
        acting = all_together(plane, chosen.ca.read_text(), chosen.port, [], elects=True)
        running = tasks.create_task(acting)
        own = plane.own_client()
        await until(own, ServiceAccount, "default", "default")
        await own.create(from_data({"metadata": {"name": "n"}, "status": {"allocatable": ROOM}}, Node))
        leases = {"kube-scheduler", "kube-controller-manager"}
        first = set()
        for name in leases:
            await until(own, Lease, "kube-system", name)
            lease = await own.get(Lease, name, "kube-system")
            first.add(lease.spec.holder_identity)
            other = replace(lease.spec, holder_identity="other", lease_duration_seconds=1)
            await own.update(replace(lease, spec=other))
        for name in leases:
            await until(
                own, Lease, "kube-system", name, lambda one: one.spec.holder_identity not in ("other", *first)
            )
        # Of a namespace that is new: made by a controller, and bound by the scheduler.
        await own.create(from_data({"metadata": {"name": "later"}}, Namespace))
        await until(own, ServiceAccount, "later", "default")
        meta = {"name": "p", "namespace": "later"}
        spec = {"containers": [{"name": "a", "image": "i"}]}
        await own.create(from_data({"metadata": meta, "spec": spec}, Pod))
        await until(own, Pod, "later", "p", lambda pod: pod.spec.node_name == "n")
        running.cancel()


async def test_a_server_shows_a_new_certificate_and_its_clients_go_on(tmp_path: Path) -> None:
    """Certificates that end in a month are renewed while the server runs, without a restart of anybody."""
    data, port = Instance.at(tmp_path / "data"), free_port()
    data.have_data_dir()

    class Year:
        """It has been a year but a month when somebody sleeps for the first time."""

        time = CLOCK.now() - LEAF_LIFETIME + RENEW_WITHIN

        def now(self) -> datetime:
            return self.time

        async def sleep(self, seconds: float) -> None:
            if renewed.is_set():
                await asyncio.Event().wait()
            self.time = CLOCK.now()

    clock, renewed = Year(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def certified() -> tuple[Authority, ServerSettings]:
        authority = Authority(data.pki_dir, clock.now())
        chosen = server_settings(data, port, LOOPBACK, CIDR, authority, DEFAULT_GATES, AuditOptions("off"))
        write_admin(data, port, authority)
        return authority, chosen

    def renew() -> datetime:
        due = certified()[0].due
        loop.call_soon_threadsafe(renewed.set)
        return due

    async def shown() -> tuple[int, int]:
        """The serial numbers of what server and kubelet client show."""
        tls = ssl.create_default_context(cafile=str(data.pki_dir / "ca.crt"))
        _, writer = await asyncio.open_connection(LOOPBACK, port, ssl=tls)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        ours = load_pem_x509_certificate((data.pki_dir / "apiserver-kubelet-client.crt").read_bytes())
        return load_der_x509_certificate(found).serial_number, ours.serial_number

    authority, chosen = certified()
    async with control_plane(chosen, CLOCK) as plane, asyncio.TaskGroup() as tasks:
        access = kubeconfig.read(data.kubeconfig)
        client = Client(access.transport())
        assert (await client.list(Pod)).items == []
        before = await shown(), (await access.login.present()).tls, plane.kubelets.at(LOOPBACK, 1).tls
        renewing = tasks.create_task(renew_forever(authority.due, renew, clock, clock.sleep))
        await renewed.wait()
        assert (await client.list(Pod)).items == []
        after = await shown(), (await access.login.present()).tls, plane.kubelets.at(LOOPBACK, 1).tls
        assert not {*before, *before[0]} & {*after, *after[0]}
        fresh = Client(access.transport())
        assert (await fresh.list(Pod)).items == []
        renewing.cancel()
        await client.close()
        await fresh.close()


async def test_certificates_that_live_for_seconds_are_renewed_in_time(tmp_path: Path) -> None:
    """The machine's own clock and OpenSSL judge them: a watch goes on, who reads `admin.conf` goes on, and
    whoever still shows the first certificate is refused once it has ended."""
    data, port, clock = Instance.at(tmp_path / "data"), free_port(), SystemClock()
    data.have_data_dir()
    loop, renewals = asyncio.get_running_loop(), asyncio.Queue[None]()

    def certified() -> tuple[Authority, ServerSettings]:
        authority = Authority(data.pki_dir, clock.now(), BRIEF)
        chosen = server_settings(data, port, LOOPBACK, CIDR, authority, DEFAULT_GATES, AuditOptions("off"))
        write_admin(data, port, authority)
        return authority, chosen

    def renew() -> datetime:
        due = certified()[0].due
        loop.call_soon_threadsafe(renewals.put_nowait, None)
        return due

    authority, chosen = certified()
    async with control_plane(chosen, clock), asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        renewing = tasks.create_task(renew_forever(authority.due, renew, clock))
        kept = Client(kubeconfig.read(data.kubeconfig).transport())
        first = ssl.create_default_context(cafile=str(authority.ca.certificate))
        first.load_cert_chain(data.pki_dir / "admin.crt", data.pki_dir / "admin.key")

        async def answered() -> bytes:
            """What who shows the first certificates is told."""
            reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=first)
            writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            with closing(writer), suppress(OSError):
                return await reader.read()
            return b""

        assert (await answered()).startswith(b"HTTP/1.1 200 ")
        watching = kept.watch(Namespace, resource_version="0")

        async def next_name() -> str:
            ((event,)) = [one for one in await anext(watching) if one.type == "ADDED"]
            return event.object.metadata.name

        # The second renewal is due when the first certificates have ended.
        for number in range(2):
            made = from_data({"metadata": {"name": f"m-{number}"}}, Namespace)
            await kept.create(made)
            assert await next_name() == made.metadata.name
            await renewals.get()
        await kept.create(from_data({"metadata": {"name": "last"}}, Namespace))
        assert await next_name() == "last"
        await watching.aclose()
        fresh = Client(kubeconfig.read(data.kubeconfig).transport())
        assert [one.metadata.name for one in (await fresh.list(Namespace)).items] == ["last", "m-0", "m-1"]
        assert not (await answered()).startswith(b"HTTP/1.1 200 ")
        renewing.cancel()
        await kept.close()
        await fresh.close()


async def test_certificates_that_are_given_are_shown_by_name_and_read_again(tmp_path: Path) -> None:
    """`--tls-cert-file`, `--tls-sni-cert-key`, `--client-ca-file`: what is given for a name is shown to it,
    what is replaced counts from the next handshake on, and clients of either authority are known."""
    data, port = Instance.at(tmp_path / "data"), free_port()
    other = Authority(tmp_path / "other", CLOCK.now())
    data.have_data_dir()
    shown, wild, listed = (
        other.server(name, name, hosts)
        for name, hosts in (("shown", [LOOPBACK]), ("wild", ["*.other.example"]), ("listed", ["x.example"]))
    )
    showing = ServingOptions(
        (shown.certificate, shown.key),
        ((wild.certificate, wild.key, ()), (listed.certificate, listed.key, ("A.example",))),
        other.ca.certificate,
    )
    trusting = ssl.create_default_context(cafile=str(other.ca.certificate))
    trusting.check_hostname = False
    eve = other.client("eve", "eve")
    trusting.load_cert_chain(eve.certificate, eve.key)

    async def called(name: str) -> tuple[str, bytes]:
        """The common name of what is shown, and the answer."""
        reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=trusting, server_hostname=name)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        with closing(writer):
            writer.write(b"GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
        return load_der_x509_certificate(found).subject.rfc4514_string().removeprefix("CN="), answer

    async with control_plane(replace(settings(data, port), showing=showing), CLOCK):
        names = {"": "shown", "a.other.example": "wild", "a.b.other.example": "shown", "a.EXAMPLE": "listed"}
        for name, expected in {**names, "x.example": "shown", LOOPBACK: "shown"}.items():
            found, answer = await called(name)
            assert (name, found) == (name, expected)
            assert b'User \\"eve\\" cannot list' in answer
        anew = other.server("anew", "anew", ["*.other.example"])
        for new, old in ((anew.key, wild.key), (anew.certificate, wild.certificate)):
            new.replace(old)
        assert (await called("a.other.example"))[0] == "anew"
    wild.certificate.write_text("nothing")
    with pytest.raises(StartError, match="cannot show or believe"):
        async with control_plane(replace(settings(data, port), showing=showing), CLOCK):
            raise AssertionError("it listens")
