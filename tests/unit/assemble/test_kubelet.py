"""A kubelet alone: what it finds out by itself, and what it is refused for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from podling.assemble import kubelet
from podling.assemble.kubelet import KubeletOptions, run
from podling.assemble.node_options import NodeOptions
from podling.client import kubeconfig
from podling.machine import instance as instances
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair
from podling.machine.start import StartError

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_it_was: None) -> Instance:
    monkeypatch.setattr(instances, "RUN_ROOT", tmp_path / "run")
    monkeypatch.setattr(kubelet, "check_machine", lambda: None)
    return Instance.at(tmp_path / "node")


def config(directory: Path, *, trusted: bool) -> Path:
    authority = Authority(directory / "pki", NOW)
    pair = authority.client("node", "system:node:n", ["system:nodes"])
    file = directory / "node.conf"
    kubeconfig.write(
        file,
        "far",
        "https://127.0.0.1:1",
        certificate_authority=authority.ca.certificate.read_bytes() if trusted else b"",
        client_certificate=pair.certificate.read_bytes(),
        client_key=pair.key.read_bytes(),
    )
    return file


def options(instance: Instance, file: Path, serving: KeyPair | None = None) -> KubeletOptions:
    node = NodeOptions(node_name="n", cri_endpoint="/nonexistent.sock")
    return KubeletOptions(instance, file, node, node_ip="127.0.0.1", serving=serving)


def test_it_asks_for_an_authority_when_its_kubeconfig_names_none(instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="the kubeconfig names no certificate authority"):
        run(options(instance, config(tmp_path, trusted=False)), print)


def test_a_certificate_it_cannot_show_is_refused(instance: Instance, tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    bad = KeyPair(tmp_path / "bad.pem", tmp_path / "bad.pem")
    with pytest.raises(StartError, match="--tls-cert-file, --tls-private-key-file or --client-ca-file: "):
        run(options(instance, config(tmp_path, trusted=True), bad), print)


def test_its_server_shows_what_it_made_and_trusts_whom_the_kubeconfig_trusts(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its runtime would start."""

    async def nowhere(*_: object) -> None:
        raise StartError("there is no runtime")

    monkeypatch.setattr(kubelet, "start_runtime", nowhere)
    with pytest.raises(StartError, match="there is no runtime"):
        run(options(instance, config(tmp_path, trusted=True)), print)
    authority = kubeconfig.read(tmp_path / "node.conf").certificate_authority
    assert (instance.pki_dir / "client-ca.crt").read_bytes() == authority
    assert (instance.pki_dir / "kubelet.crt").exists()
    assert instance.choices() is not None
