"""What a start settles: a port nobody has, and a subnet that stays the same."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from podling.assemble.settle import check_port, choose, port_before
from podling.machine import instance as instances
from podling.machine.instance import Instance
from podling.machine.start import StartError


@pytest.fixture(autouse=True)
def claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "RUN_ROOT", tmp_path / "run")


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    made = Instance.at(tmp_path / "one")
    made.data_dir.mkdir()
    return made


def test_a_port_in_use_is_refused_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"port {port} is in use: "):
            check_port(port)
    check_port(port)


def test_port_and_subnet_are_those_of_the_last_start(instance: Instance, tmp_path: Path) -> None:
    assert port_before(instance) is None
    first = choose(instance, 7000)
    assert port_before(instance) == first.port == 7000
    assert choose(instance, 7001).subnet == first.subnet
    other = Instance.at(tmp_path / "two")
    other.data_dir.mkdir()
    assert choose(other, 7000).subnet != first.subnet


def test_a_subnet_that_another_has_is_refused(instance: Instance, tmp_path: Path) -> None:
    subnet = choose(instance, 7000).subnet
    other = Instance.at(tmp_path / "two")
    other.data_dir.mkdir()
    with pytest.raises(StartError, match=f"pods cannot have the subnet {subnet}: it is in use"):
        choose(other, 7000, subnet)


def test_choices_nobody_can_read_are_refused(instance: Instance) -> None:
    instance.choices_file.write_text("{")
    with pytest.raises(StartError):
        port_before(instance)
    with pytest.raises(StartError):
        choose(instance, 7000)
