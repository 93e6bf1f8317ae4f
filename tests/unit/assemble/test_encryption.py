"""`--encryption-provider-config`: what it seals, how keys are rotated, and what is said without them."""

from __future__ import annotations

import asyncio
import base64
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kms_plugin import KmsPlugin
from podling.assemble.control_plane import ServerSettings, control_plane, server_settings
from podling.assemble.encryption import encryption_of
from podling.assemble.settle import LOOPBACK, AuditOptions, EncryptionOptions
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.machine.pki import Authority
from podling.machine.start import DamagedError, StartError
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.gates import DEFAULT_GATES
from podling.model.time import SystemClock
from podling.model.types.core import ConfigMap, Namespace, Secret
from podling.storage.sealing import Sealing

CLOCK = SystemClock()
IDENTITY: dict[str, Any] = {"identity": {}}
VALUE = b'{"kind":"x"}'
HIDDEN = b"aHVzaCBodXNo"


def key(name: str) -> dict[str, Any]:
    return {
        "aesgcm": {"keys": [{"name": name, "secret": base64.b64encode((name * 32)[:32].encode()).decode()}]}
    }


async def sealing_of(file: Path) -> Sealing:
    return (await encryption_of(file)).sealing


def written(file: Path, *entries: tuple[list[str], list[dict[str, Any]]]) -> Path:
    said = {
        "kind": "EncryptionConfiguration",
        "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": resources, "providers": providers} for resources, providers in entries],
    }
    file.write_text(yaml.safe_dump(said))
    return file


@pytest.mark.parametrize(
    ("named", "sealed"),
    [
        ("secrets", {"/registry/secrets/a/b"}),
        ("*.", {"/registry/secrets/a/b", "/registry/pods/a/b", "/registry/events/a/b"}),
        ("*.apps", {"/registry/apps/deployments/a/b"}),
        ("deployments.apps", {"/registry/apps/deployments/a/b"}),
        (
            "*.*",
            {
                "/registry/secrets/a/b",
                "/registry/pods/a/b",
                "/registry/events/a/b",
                "/registry/apps/deployments/a/b",
                "/registry/coordination.k8s.io/leases/a/b",
            },
        ),
        ("pods.apps", set()),
    ],
)
async def test_which_resources_are_sealed(tmp_path: Path, named: str, sealed: set[str]) -> None:
    sealing = await sealing_of(written(tmp_path / "file", ([named], [key("a")])))
    keys = [
        "/registry/secrets/a/b",
        "/registry/pods/a/b",
        "/registry/events/a/b",
        "/registry/apps/deployments/a/b",
        "/registry/coordination.k8s.io/leases/a/b",
    ]
    assert {one for one in keys if sealing.seal(one, VALUE).stored != VALUE} == sealed


async def test_the_narrower_rule_counts(tmp_path: Path) -> None:
    entries = (["pods"], [IDENTITY]), (["*."], [key("a")]), (["*.*"], [key("b")])
    sealing = await sealing_of(written(tmp_path / "file", *entries))
    assert sealing.seal("/registry/pods/a/b", VALUE).stored == VALUE
    assert sealing.seal("/registry/secrets/a/b", VALUE).stored.startswith(b"k8s:enc:aesgcm:v1:a:")
    assert sealing.seal("/registry/apps/deployments/a/b", VALUE).stored.startswith(b"k8s:enc:aesgcm:v1:b:")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("a: [", "error converting YAML to JSON"),
        ("kind: EncryptionConfiguration\n", "Object 'apiVersion' is missing"),
        ("a: 1\na: 2\n", '"a" already set'),
    ],
)
async def test_a_file_that_says_nothing_useful(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(StartError, match=f"the encryption configuration {file} cannot be used: .*{why}"):
        await sealing_of(file)


def settings(instance: Instance, file: Path | None) -> ServerSettings:
    authority = Authority(instance.pki_dir, CLOCK.now())
    chosen = server_settings(
        instance, 0, LOOPBACK, "10.96.0.0/16", authority, DEFAULT_GATES, AuditOptions("off")
    )
    return replace(chosen, encryption=EncryptionOptions(file))


async def rewritten(client: Client) -> bool:
    """Whether replacing the secret by itself writes it, as `kubectl replace` does."""
    before = await client.get(Secret, "a", "default")
    after = await client.update(before)
    assert after.data == before.data
    return after.metadata.resource_version != before.metadata.resource_version


async def test_secrets_are_sealed_rewritten_and_opened_again(tmp_path: Path) -> None:
    instance, file = Instance.at(tmp_path / "data"), tmp_path / "file"

    def on_disk() -> bytes:
        return b"".join(one.read_bytes() for one in instance.data_dir.glob(f"{instance.database.name}*"))

    body = {"metadata": {"name": "a", "namespace": "default"}}
    async with control_plane(settings(instance, None), CLOCK) as plane:
        await plane.own_client().create(from_data({"metadata": {"name": "default"}}, Namespace))
        await plane.own_client().create(from_data({**body, "data": {"a": HIDDEN.decode()}}, Secret))
        await plane.own_client().create(from_data({**body, "data": {"a": "shown"}}, ConfigMap))
        assert not await rewritten(plane.own_client())
        assert HIDDEN in on_disk()

    old = written(file, (["secrets"], [key("old"), IDENTITY]))
    async with control_plane(settings(instance, old), CLOCK) as plane:
        assert await rewritten(plane.own_client())
        assert not await rewritten(plane.own_client())
        await plane.storage.compact(plane.storage.revision)
    assert HIDDEN not in on_disk()
    assert b"k8s:enc:aesgcm:v1:old:" in on_disk()
    assert b"shown" in on_disk()

    new = written(file, (["secrets"], [key("new"), key("old")]))
    async with control_plane(settings(instance, new), CLOCK) as plane:
        assert await rewritten(plane.own_client())
        assert not await rewritten(plane.own_client())

    for file_of in (written(tmp_path / "other", (["secrets"], [key("old")])), None):
        with pytest.raises(DamagedError, match=r'/registry/secrets/default/a.* with the key "new"') as said:
            async with control_plane(settings(instance, file_of), CLOCK):
                raise AssertionError("it serves")
        assert said.value.exit_code == 4

    only_new = written(file, (["secrets"], [key("new")]))
    async with control_plane(settings(instance, only_new), CLOCK) as plane:
        found = await plane.own_client().get(Secret, "a", "default")
        assert base64.b64encode(found.data["a"]) == HIDDEN


async def test_keys_change_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be used, or that takes a key away that is needed, changes nothing."""
    instance = Instance.at(tmp_path / "data")
    file = written(tmp_path / "file", (["secrets"], [key("old"), IDENTITY]))
    chosen = replace(settings(instance, None), encryption=EncryptionOptions(file, reloads=True))
    body = {"metadata": {"name": "a", "namespace": "default"}}

    heard: asyncio.Queue[str] = asyncio.Queue()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.put_nowait(record.getMessage())

    async def told(what: str) -> None:
        while what not in await heard.get():
            pass

    caplog.set_level("INFO", "podling.assemble.followed")
    monkeypatch.setattr(logging.getLogger("podling.assemble.followed"), "handlers", [Heard()])
    async with control_plane(chosen, CLOCK) as plane:
        client = plane.own_client()
        await client.create(from_data({"metadata": {"name": "default"}}, Namespace))
        await client.create(from_data({**body, "data": {"a": HIDDEN.decode()}}, Secret))
        for bad, why in (("a: [", "error converting YAML"), ("", "it is empty")):
            file.write_text(bad)
            await told(f"stays what it was: {why}")
        written(file, (["secrets"], [key("new"), IDENTITY]))
        await told("stays what it was: no key that it gives opens /registry/secrets/default/a")
        assert not await rewritten(client)
        replaced = written(tmp_path / "next", (["secrets"], [key("new"), key("old")]))
        replaced.rename(file)
        await told("has changed")
        assert await rewritten(client)
        assert not await rewritten(client)
    only_new = written(file, (["secrets"], [key("new")]))
    async with control_plane(settings(instance, only_new), CLOCK) as plane:
        assert (await plane.own_client().get(Secret, "a", "default")).data["a"]


async def test_a_plugin_that_is_away_does_not_end_what_is_sealed(tmp_path: Path) -> None:
    """Without it a podling does not start, and nothing is touched; with it all is as it was."""
    plugin, instance = KmsPlugin(), Instance.at(tmp_path / "data")
    kms = {"apiVersion": "v2", "name": "a", "endpoint": f"unix://{tmp_path}/kms.sock"}
    # It is waited for as long as this; a machine with other work may be slow.
    away, near = (
        written(tmp_path / seconds, (["secrets"], [{"kms": {**kms, "timeout": seconds}}, IDENTITY]))
        for seconds in ("200ms", "30s")
    )
    body = {"metadata": {"name": "a", "namespace": "default"}, "data": {"a": HIDDEN.decode()}}
    async with control_plane(settings(instance, away), CLOCK) as plane:
        await plane.own_client().create(from_data({"metadata": {"name": "default"}}, Namespace))
        with pytest.raises(StatusError, match="got unexpected nil transformer"):
            await plane.own_client().create(from_data(body, Secret))
        await plane.own_client().create(from_data({**body, "data": {"a": "shown"}}, ConfigMap))
    with plugin.serving(tmp_path / "kms.sock"):
        async with control_plane(settings(instance, near), CLOCK) as plane:
            await plane.own_client().create(from_data(body, Secret))
            await rewritten(plane.own_client())
            before = plane.storage.revision
    with pytest.raises(StartError, match="/registry/secrets/default/a, which cannot be read now") as why:
        async with control_plane(settings(instance, away), CLOCK):
            raise AssertionError("it serves")
    assert why.value.exit_code != DamagedError("").exit_code
    with plugin.serving(tmp_path / "kms.sock"):
        async with control_plane(settings(instance, near), CLOCK) as plane:
            assert (await plane.own_client().get(Secret, "a", "default")).data["a"]
            assert plane.storage.revision == before
