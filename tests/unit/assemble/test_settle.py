"""What a start settles: a port nobody has, and a subnet that stays the same."""

from __future__ import annotations

import socket
from ipaddress import ip_network
from pathlib import Path

import pytest

from podling.assemble.settle import RANGE_OF_OLD, check_port, choose, choose_range, port_before
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


def test_the_services_range_stays_and_is_no_other_podlings(instance: Instance, tmp_path: Path) -> None:
    first = choose_range(instance, 7000)
    assert choose(instance, 7000).service_range == choose_range(instance, 7001) == first
    assert instance.choices() == choose(instance, 7001)
    other = Instance.at(tmp_path / "two")
    other.data_dir.mkdir()
    assert choose_range(other, 7000) != first
    # Its services have these addresses, whoever else has taken them meanwhile.
    instance.release_subnet()
    third = Instance.at(tmp_path / "three")
    third.data_dir.mkdir()
    assert choose_range(third, 7000, first) == first
    assert choose_range(instance, 7000) == first


def test_a_data_directory_of_before_keeps_its_range(instance: Instance, tmp_path: Path) -> None:
    instance.database.touch()
    assert choose_range(instance, 7000) == RANGE_OF_OLD
    node = Instance.at(tmp_path / "node")
    node.data_dir.mkdir()
    choose(node, 7000)
    assert choose_range(node, 7000)


def test_the_range_that_is_asked_for_wins(instance: Instance) -> None:
    choose_range(instance, 7000)
    assert choose_range(instance, 7000, "10.200.1.0/20") == "10.200.0.0/20"
    assert choose_range(instance, 7000) == "10.200.0.0/20"


def test_nobody_chooses_what_another_podling_was_asked_to_have(instance: Instance, tmp_path: Path) -> None:
    """Also if that is only a part, or more."""
    other = Instance.at(tmp_path / "other")
    other.data_dir.mkdir()
    first = int(choose_range(instance, 7000).split(".")[1])
    instance.release_subnet()
    instance.choices_file.unlink()
    choose_range(other, 7000, f"10.{first}.64.0/20,fd00::/112")
    assert not ip_network(choose_range(instance, 7000)).overlaps(ip_network(f"10.{first}.64.0/20"))
    instance.choices_file.unlink()
    instance.release_subnet()
    choose_range(other, 7000, "10.96.0.0/12")
    assert int(choose_range(instance, 7000).split(".")[1]) > 111


def test_a_range_that_is_routed_elsewhere_is_refused(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless services have its addresses already, or it is exactly that of another podling."""
    choose_range(instance, 7000, "10.200.0.0/16,fd00::/112")
    routed = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask\neth1 0000C80A 0 1 0 0 0 0000FFFF 0 0 0\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda _: routed)
    assert choose_range(instance, 7000, "10.200.0.0/16,fd00::/112")
    assert choose_range(instance, 7000, "10.200.0.0/16")
    with pytest.raises(StartError, match=r"10.200.64.0/20 is routed on this machine"):
        choose_range(instance, 7000, "10.200.64.0/20")


@pytest.mark.parametrize(
    "wanted",
    ["x", "10.0.0.0/31", "10.0.0.0/33", "fd00::/108", "10.0.0.0/8,10.1.0.0/16", "10.0.0.0/8,fd00::/63"],
)
def test_a_range_no_service_could_have_an_address_of_is_refused(instance: Instance, wanted: str) -> None:
    with pytest.raises(StartError, match="--service-cluster-ip-range="):
        choose_range(instance, 7000, wanted)
