"""What a start settles: certificates' names, ports, and what is said when it cannot."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from podling import doctor, prepare
from podling.doctor import Finding, Verdict
from podling.instance import Instance
from podling.prepare import StartError, api_server_hosts, check_machine, free_port


def test_the_api_server_is_known_by_every_name_clients_use() -> None:
    assert api_server_hosts("192.0.2.7") == [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "192.0.2.7",
    ]
    assert api_server_hosts("127.0.0.1").count("127.0.0.1") == 1


def test_a_port_that_is_taken_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert free_port("127.0.0.1", taken) not in (0, taken)
    assert free_port("127.0.0.1", taken) == taken


def test_a_machine_that_lacks_something_is_told_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [
        Finding("runc", Verdict.FAILED, "not found", "apt-get install runc", "runc"),
        Finding("CAP_SYS_RESOURCE", Verdict.WARNING, "missing", "podling adapts"),
        Finding("nft", Verdict.FAILED, "not found", "apt-get install nftables", "nftables"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda ports: findings)
    with pytest.raises(StartError) as refused:
        check_machine()
    assert "apt-get install nftables runc" in str(refused.value)
    assert "CAP_SYS_RESOURCE" not in str(refused.value)


def test_a_running_podling_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podling.instance.RUN_ROOT", tmp_path / "run")
    instance = Instance.at(tmp_path)
    lock = instance.lock()
    assert lock is not None
    with lock, pytest.raises(StartError, match="already running"):
        prepare._lock(instance)
