"""R-SYS-8: which configurations of admission plugins a server is not started with, and what it says of them:
kube-apiserver and podling in the same words, with the path of each fault."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from peer.admission_configurations import ACCEPTED, KUBECONFIG, OFF, OTHERWISE, REFUSED, STRICTER
from peer.agreed import differences, told_at_start
from peer.control_plane import ETCD_URL
from peer.server import Server
from podling.assemble.admission import plugin_options
from podling.assemble.settle import AdmissionOptions
from podling.machine.pki import Authority
from podling.machine.start import StartError
from podling.model.rules.admission_plugins import DEFAULT_PLUGINS

UNREACHABLE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "c",
}
PREFIXES = ("failed to read plugin config: ", "couldn't init admission plugin", "failed to initialize")


def written(directory: Path, name: str, configuration: Any) -> tuple[Path, frozenset[str]]:
    """The file, and which plugins are to be on."""
    (directory / KUBECONFIG).write_text(yaml.safe_dump(UNREACHABLE))
    file = directory / f"{name.replace(' ', '-').replace(':', '')}.yaml"
    text = "" if configuration is None else yaml.safe_dump(configuration)
    file.write_text(text.replace("{here}", str(directory)))
    entries = configuration.get("plugins", ()) if isinstance(configuration, dict) else ()
    on = {str(one.get("name")) for one in entries if isinstance(one, dict)}
    return file, frozenset(on & {*OFF})


def told_by_kubernetes(programs: Path, etcd: str, directory: Path, name: str) -> str:
    file, on = written(directory, name, REFUSED[name])
    told = told_at_start(
        programs,
        directory,
        etcd_servers=etcd,
        admission_control_config_file=file,
        enable_admission_plugins=",".join(sorted(on)),
        authorization_mode="AlwaysAllow",
        service_cluster_ip_range="10.96.0.0/16",
    )
    whole = told if told.startswith("<") else msgspec.json.decode(told)
    return str(whole).removeprefix("failed to apply admission: ").partition(" in scheme ")[0]


async def told_by_podling(directory: Path, name: str, configuration: Any) -> str:
    file, on = written(directory, name, configuration)
    try:
        async with plugin_options(AdmissionOptions(DEFAULT_PLUGINS | on, file)):
            return ""
    except StartError as error:
        return str(error).partition(" cannot be used: ")[2]


def plain(told: str) -> str:
    """Without where in Kubernetes' program it was found."""
    for prefix in PREFIXES:
        if told.startswith(prefix):
            told = told.removeprefix(prefix)
            return told if prefix.endswith(" ") else told.partition('": ')[2]
    return told


async def test_what_no_server_is_started_with(
    kubernetes: Server, kubernetes_programs: Path, tmp_path: Path
) -> None:
    """Kubernetes' looks for its etcd before it reads the configuration."""
    etcd = (kubernetes.kubeconfig.parent / ETCD_URL).read_text()
    Authority(tmp_path, datetime.now(UTC)).client("service-accounts", "service-accounts")

    def ask(name: str) -> str:
        said = told_by_kubernetes(kubernetes_programs, etcd, tmp_path, name)
        assert said, name
        return OTHERWISE.get(name) or plain(said)

    ours = {name: plain(await told_by_podling(tmp_path, name, REFUSED[name])) for name in REFUSED}
    ours |= {name: said for name, said in OTHERWISE.items() if said in ours[name]}
    told = {name: said.replace(str(tmp_path), "DIRECTORY") for name, said in ours.items()}
    differ = differences(
        "admission",
        kubernetes_programs,
        REFUSED,
        told,
        lambda name: ask(name).replace(str(tmp_path), "DIRECTORY"),
    )
    assert not differ


@pytest.mark.parametrize("name", STRICTER)
async def test_what_podling_does_not_pass_over(name: str, tmp_path: Path) -> None:
    configuration, why = STRICTER[name]
    assert why in await told_by_podling(tmp_path, name, configuration)


@pytest.mark.parametrize("name", ACCEPTED)
async def test_what_a_server_is_started_with(name: str, tmp_path: Path) -> None:
    assert not await told_by_podling(tmp_path, name, ACCEPTED[name])
