"""Storage and API server of a data directory, and the controllers and the scheduler beside them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from podling.assemble.control_plane import Plane, ServerSettings, control_plane, server_settings
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
from podling.assemble.settle import LOOPBACK, AuditOptions
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.informer import until
from podling.machine.instance import Instance
from podling.machine.pki import Authority
from podling.machine.start import DamagedError, StartError
from podling.model.codec.json import from_data
from podling.model.gates import DEFAULT_GATES
from podling.model.time import SystemClock
from podling.model.types.core import ConfigMap, Namespace, ServiceAccount
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.service import Service

Run = Callable[[Plane, str, int, list[Measured]], Coroutine[Any, Any, None]]

CLOCK = SystemClock()
CIDR = "10.96.0.0/16"
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


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as free:
        port: int = free.getsockname()[1]
        return port


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
    with socket.create_server((LOOPBACK, 0)) as taken:
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


async def all_together(plane: Plane, ca: str, port: int, measured: list[Measured]) -> None:
    await run_all(
        plane.client(CONTROLLERS),
        plane.client(SCHEDULER),
        ca,
        None,
        LOOPBACK,
        port,
        CIDR,
        CLOCK,
        started=asyncio.Event(),
        measure=measured.append,
    )


async def each_alone(plane: Plane, ca: str, port: int, measured: list[Measured]) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_own(plane.client(CONTROLLERS), LOOPBACK, port, CIDR, CLOCK))
        tasks.create_task(run_controllers(plane.client(CONTROLLERS), ca, None, CLOCK))
        tasks.create_task(run_scheduler(plane.client(SCHEDULER), CLOCK))


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
