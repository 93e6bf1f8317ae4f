"""What any start asks of the machine, and what is said when it cannot go on."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from podling.machine import doctor
from podling.machine.doctor import Finding, Verdict
from podling.machine.instance import Instance
from podling.machine.start import (
    DISK_FAULTS,
    DamagedError,
    StartError,
    check_machine,
    hold,
    listener,
    writing,
)
from ports import free_port


def test_a_port_that_is_taken_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        taken = server.getsockname()[1]
        with listener("127.0.0.1", taken, 0) as other:
            assert other.getsockname()[1] not in (0, taken)
    with listener("127.0.0.1", taken, 0) as wanted:
        assert wanted.getsockname()[1] == taken
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1, port {taken}: .*in use"):
            listener("127.0.0.1", taken)


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
    monkeypatch.setattr("podling.machine.instance.RUN_ROOT", tmp_path / "run")
    instance = Instance.at(tmp_path)
    lock = instance.lock()
    assert lock is not None
    with lock:
        with pytest.raises(StartError, match=rf"already running for {tmp_path} \(process {os.getpid()}\): "):
            hold(instance)
        # To another process, before this one has written its id.
        instance.lock_file.write_text("")
        monkeypatch.setattr(Instance, "lock", lambda _: None)
        with pytest.raises(StartError, match=f"already running for {tmp_path}: "):
            hold(instance)


@pytest.mark.parametrize("number", sorted(DISK_FAULTS))
def test_what_a_disk_refuses_is_for_the_user(number: int, tmp_path: Path) -> None:
    with (
        pytest.raises(StartError, match=f"^cannot write /x/state.db: {os.strerror(number)}$"),
        writing(tmp_path),
    ):
        raise OSError(number, os.strerror(number), "/x/state.db")
    with (
        pytest.raises(StartError, match=f"^cannot write in {tmp_path}: {os.strerror(number)}$"),
        writing(tmp_path),
    ):
        raise OSError(number, os.strerror(number))


def test_no_other_fault_is_taken_for_one_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), writing(tmp_path):
        raise OSError(errno.ENOENT, "No such file or directory", "nft")


def test_damage_has_an_exit_code_of_its_own() -> None:
    assert (StartError("").exit_code, DamagedError("").exit_code) == (1, 4)
