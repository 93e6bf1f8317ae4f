"""Issue 13, the upgrade: what a podling wrote that enforced no roles is served by one that does, and its
users keep working.

`before_roles.tar.xz` has the data file of `podling apiserver` of commit e17cb77 (23 November 2026), which let
every certificate do everything: namespace `team` with a config map, a secret, an account and a pod, another
config map that the scheduler made, and a role `readers` for the group `devs`, which nobody asked for then.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podling.assemble.control_plane import Plane, control_plane, server_settings
from podling.assemble.kubeconfigs import write_admin
from podling.assemble.settle import LOOPBACK, AuditOptions
from podling.client import kubeconfig
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.machine.pki import Authority
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.gates import DEFAULT_GATES
from podling.model.time import SystemClock
from podling.model.types.core import ConfigMap, Namespace, Secret
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding
from ports import free_port

BEFORE = Path(__file__).with_name("before_roles.tar.xz")
SAID = "Roles and bindings are enforced from now on"
CLOCK = SystemClock()


@asynccontextmanager
async def begun(instance: Instance) -> AsyncIterator[Plane]:
    port, authority = free_port(), Authority(instance.pki_dir, CLOCK.now())
    write_admin(instance, port, authority)
    options = instance, port, LOOPBACK, "10.96.0.0/16", authority, DEFAULT_GATES, AuditOptions("off")
    async with control_plane(server_settings(*options), CLOCK) as plane:
        yield plane


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    found = Instance.at(tmp_path)
    # tarfile of Python 3.11.2, which Debian has, knows no filter, and later ones want one.
    subprocess.run(["tar", "-xf", BEFORE, "--no-same-owner", "-C", tmp_path], check=True)
    return found


async def refused(client: Client, type_: type[KubeObject]) -> bool:
    try:
        await client.list(type_)
    except StatusError as error:
        return error.code == 403
    return False


async def test_users_of_before_keep_working(instance: Instance, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with begun(instance) as plane:
            admin = Client(kubeconfig.read(instance.kubeconfig).transport())
            assert (await admin.get(ConfigMap, "settings", "team")).data == {"a": "b"}
            assert (await admin.get(Secret, "password", "team")).data
            assert (await admin.get(Pod, "web", "team")).spec.containers[0].image == "i"
            await admin.get(ConfigMap, "by-another", "team")
            await admin.create(from_data({"metadata": {"name": "new"}}, Namespace))
            await admin.close()
            # What was written about roles before counts now.
            dev, other = plane.client("ann", "devs"), plane.client("system:kube-scheduler")
            await dev.list(ConfigMap)
            assert await refused(dev, Secret)
            await other.list(Pod)
            assert await refused(other, ConfigMap)
            assert {"readers", "cluster-admin", "system:node"} <= {
                role.metadata.name for role in (await plane.own_client().list(ClusterRole)).items
            }
        assert caplog.text.count(SAID) == 1
        caplog.clear()
        async with begun(instance) as plane:
            assert (await plane.own_client().get(ClusterRoleBinding, "readers")).subjects[0].name == "devs"
    assert SAID not in caplog.text
