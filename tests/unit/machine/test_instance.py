"""Where a podling keeps its things: identities, choices, subnets, the lock."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from podling.machine import instance
from podling.machine.instance import LAYOUT_VERSION, Choices, Instance, LayoutError, routed

ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    "podlingme\t0040400A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
)


@pytest.fixture
def run_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(instance, "RUN_ROOT", tmp_path / "run")
    return tmp_path / "run"


def test_two_data_directories_share_no_name(tmp_path: Path) -> None:
    one, other = Instance.at(tmp_path / "one"), Instance.at(tmp_path / "other")
    for name in ("identity", "run_dir", "bridge", "cgroup", "database"):
        assert getattr(one, name) != getattr(other, name)
    assert len(one.bridge) <= 15


def test_the_same_directory_by_another_path_is_the_same_podling(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert Instance.at(tmp_path / "link" / "data") == Instance.at(tmp_path / "data")


def test_choices_are_kept(tmp_path: Path) -> None:
    here = Instance.at(tmp_path)
    assert here.choices() is None
    chosen = Choices(layout=LAYOUT_VERSION, port=7000, subnet="10.64.1.0/24")
    here.keep(chosen)
    assert here.choices() == chosen


@pytest.mark.parametrize("content", ['{"layout":99,"port":1,"subnet":"x"}', "not json", "{}"])
def test_a_data_directory_of_another_version_is_refused(tmp_path: Path, content: str) -> None:
    here = Instance.at(tmp_path)
    here.choices_file.write_text(content)
    with pytest.raises(LayoutError, match=str(tmp_path)):
        here.choices()


def test_a_subnet_belongs_to_one_podling(tmp_path: Path, run_root: Path) -> None:
    one, other = Instance.at(tmp_path / "one"), Instance.at(tmp_path / "other")
    first = one.claim_subnet(None, lambda subnet: False)
    assert one.claim_subnet(first, lambda subnet: True) == first, (
        "its own claim holds whatever the routes say"
    )
    assert other.claim_subnet(first, lambda subnet: False) != first
    one.release_subnet()
    assert other.claim_subnet(first, lambda subnet: False) == first


def test_a_subnet_the_machine_uses_is_passed_over(tmp_path: Path, run_root: Path) -> None:
    here = Instance.at(tmp_path)
    asked: list[str] = []

    def taken(subnet: str) -> bool:
        asked.append(subnet)
        return len(asked) < 3

    assert here.claim_subnet("10.64.0.0/24", taken) == asked[2]


@pytest.mark.parametrize(
    ("subnet", "own", "expected"),
    [
        ("192.0.2.0/24", "podlingme", True),
        ("192.0.2.128/25", "podlingme", True),
        ("10.64.64.0/24", "podlingme", False),
        ("10.64.64.0/24", "podlingother", True),
        ("10.99.0.0/24", "podlingme", False),
    ],
)
def test_routed(subnet: str, own: str, expected: bool) -> None:
    assert routed(subnet, ROUTES, own) is expected


def test_one_process_at_a_time(tmp_path: Path, run_root: Path) -> None:
    here = Instance.at(tmp_path)
    assert here.running() is None
    lock = here.lock()
    assert lock is not None
    with lock:
        assert here.running() == os.getpid()
        assert here.lock() is None
    assert here.running() is None


def test_a_lock_that_was_removed_since_is_none(
    tmp_path: Path, run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A podling that starts while another one is ended, and its directory removed, has a lock that the next
    one finds."""
    here = Instance.at(tmp_path)
    real = fcntl.flock
    ended: list[IO[str]] = []

    def flock(file: IO[str], how: int) -> None:
        if not ended:
            ended.append(file)
            shutil.rmtree(here.run_dir)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = here.lock()
    assert lock is not None and ended
    with lock:
        assert here.running() == os.getpid()
        assert here.lock() is None


HELD_BY_A_CHILD = """
import os, sys
from pathlib import Path
from podling.machine import instance

instance.RUN_ROOT = Path(sys.argv[1])
lock = instance.Instance.at(Path(sys.argv[2])).lock()
if os.fork() == 0:
    # As between its fork and its exec.
    sys.stdin.readline()
    os.execvp("true", ["true"])
print("held", flush=True)
os.kill(os.getpid(), 9)
"""


@contextmanager
def holding(program: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that holds the lock of the instance at `tmp_path`, and goes on when it is told a line."""
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "run", tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        yield process


def test_a_lock_that_only_a_child_of_the_dead_holds_is_waited_for(
    tmp_path: Path, run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is killed while it starts a program leaves the lock and its ports to that program, for a
    moment."""
    here = Instance.at(tmp_path)
    real = fcntl.flock
    waits = 0
    with holding(HELD_BY_A_CHILD, tmp_path) as killed:
        killed.wait()

        def flock(file: IO[str], how: int) -> None:
            nonlocal waits
            if how == fcntl.LOCK_EX:
                waits += 1
                print(file=killed.stdin, flush=True)
            real(file, how)

        monkeypatch.setattr(fcntl, "flock", flock)
        assert here.running() is None
        lock = here.lock()
        assert lock is not None and waits == 1
    with lock:
        assert here.running() == os.getpid()
        assert here.lock() is None
        assert here.lock_file.read_text() == str(os.getpid())


STARTS = """
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from podling.machine import instance

instance.RUN_ROOT = Path(sys.argv[1])
with instance.Instance.at(Path(sys.argv[2])).lock():
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_the_end_of_another_that_starts_is_not_waited_for(
    tmp_path: Path, run_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has written its own id, that of one that has ended is there."""
    here = Instance.at(tmp_path)
    real = fcntl.flock

    def flock(file: IO[str], how: int) -> None:
        assert how != fcntl.LOCK_EX, "it waits"
        real(file, how)

    with holding(STARTS, tmp_path):
        here.lock_file.write_text("0")
        monkeypatch.setattr(fcntl, "flock", flock)
        assert here.lock() is None


def test_nobody_else_can_take_its_lock(tmp_path: Path, run_root: Path) -> None:
    """`flock` is for everybody who can open a file, be it for reading."""
    here = Instance.at(tmp_path)
    here.run_dir.mkdir(parents=True, mode=0o755)
    here.lock_file.write_text("17")
    here.lock_file.chmod(0o644)
    lock = here.lock()
    assert lock is not None
    with lock:
        assert here.running() == os.getpid()
    assert here.lock_file.stat().st_mode & 0o777 == 0o600
    assert here.run_dir.stat().st_mode & 0o777 == 0o711


@pytest.mark.parametrize("before", [None, 0o755, 0o700, 0o777, 0o711])
@pytest.mark.parametrize("umask", [0o022, 0o077, 0])
def test_others_reach_what_is_in_the_data_directory_by_name_alone(
    before: int | None, umask: int, tmp_path: Path
) -> None:
    here = Instance.at(tmp_path / "above" / "data")
    if before is not None:
        here.data_dir.mkdir(parents=True)
        here.data_dir.chmod(before)
    old = os.umask(umask)
    try:
        here.have_data_dir()
    finally:
        os.umask(old)
    assert here.data_dir.stat().st_mode & 0o7777 == 0o711


def test_a_directory_that_is_everybodys_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    Instance.at(tmp_path).have_data_dir()
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
