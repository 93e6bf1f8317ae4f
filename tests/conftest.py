"""What tests of several rooms share: a real containerd, private to the test run, with two small images in
it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

import leftovers
from podling.cri.containerd.config import ContainerdSettings
from podling.cri.containerd.containerd import Containerd, remove_leftovers
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.archive import load_images
from podling.cri.images.build import ImageConfig, Symlink, build_image, pause_image
from podling.cri.interface import RuntimeFault

pytest_plugins = ["tables"]

PAUSE = "podling.test/pause:1"
BUSYBOX = "podling.test/busybox:1"
TCPDUMP = "podling.test/tcpdump:1"
"""With a stand-in: it says its arguments, and writes the header of a pcap and packets without end."""
REAL_TCPDUMP = "podling.test/real-tcpdump:1"
"""With this machine's; not there where it has none."""
_TCPDUMP = rb"""#!/bin/sh
echo "arguments: $*" >&2
case "$*" in *wrong*) exit 1 ;; esac
printf '\324\303\262\241\002\0\004\0\0\0\0\0\0\0\0\0\0\0\004\0\001\0\0\0'
case "$*" in *"-c 1"*) printf packet; exit 0 ;; esac
while :; do printf packet || exit 1; usleep 10000; done
"""
UntilDone = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
BEGUN_FIRST = (
    "tests/e2e/test_debug.py",
    "tests/e2e/test_init_order.py",
    "tests/peer/test_fields.py",
    "tests/e2e/test_network_alone.py",
    "tests/e2e/test_lifecycle.py",
    "tests/e2e/test_copying.py",
    "tests/e2e/test_charts.py",
    "tests/e2e/test_several_machines.py",
    "tests/e2e/test_kubernetes_kubelet.py",
    "tests/peer/test_lost_nodes.py",
    "tests/peer/test_autoscalers.py",
    "tests/peer/test_set_controllers.py",
    "tests/peer/test_job_controllers.py",
    "tests/peer/test_disrupted_zones.py",
    "tests/contract/streams/test_commands.py",
    "tests/peer/test_apply.py",
)
"""The files that take longest, 2 to 7 minutes, so that a whole run waits for none of them at its end."""
_NEEDED = ("containerd", "ctr", "runc", "busybox", "catatonit")

# How long an example takes says what else the machine does, nothing of what is proved.
settings.register_profile("podling", max_examples=30, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "podling"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "containerd: needs root and a real containerd, runc and CNI plugins")
    config.addinivalue_line(
        "markers",
        "interop(program, *parts): proves that a program of Kubernetes works with these parts of podling "
        "(scripts/interop.py)",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {file: number for number, file in enumerate(BEGUN_FIRST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


def pytest_sessionstart(session: pytest.Session) -> None:
    if os.geteuid() == 0 and not hasattr(session.config, "workerinput"):
        leftovers.clear_others()


def pytest_sessionfinish() -> None:
    leftovers.clear_own()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All tests and what they import stay to the end: no collection need go through a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a failure parses source. Python 3.11 keeps the depth of its parser once for all that is
    parsed: if things are collected meanwhile, and one of them ends with an error whose traceback is parsed as
    well, the first parse fails, and with it the whole run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@dataclass(frozen=True)
class RealContainerd:
    """A running containerd. Containers made in it go below `cgroup_parent`, so that no cgroup is left
    behind."""

    settings: ContainerdSettings
    cgroup_parent: str
    pause: str = PAUSE
    busybox: str = BUSYBOX

    @property
    def socket(self) -> str:
        return str(self.settings.socket)


@pytest.fixture(scope="session")
def image_archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Archives of the pause image and of a busybox with its commands in /bin, by reference."""
    directory = tmp_path_factory.mktemp("images")
    archives = {PAUSE: directory / "pause.tar", BUSYBOX: directory / "busybox.tar"}
    archives[TCPDUMP] = directory / "tcpdump.tar"
    archives[PAUSE].write_bytes(pause_image(PAUSE, Path("/usr/bin/catatonit")))
    archives[BUSYBOX].write_bytes(_busybox_image(BUSYBOX, {}))
    archives[TCPDUMP].write_bytes(_busybox_image(TCPDUMP, {"bin/tcpdump": _TCPDUMP}))
    if program := shutil.which("tcpdump"):
        archives[REAL_TCPDUMP] = directory / "real-tcpdump.tar"
        linked = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        files = [file for file in linked.split() if file.startswith("/")]
        # Debian's has itself run as this user.
        users = b"root:x:0:0:root:/root:/bin/sh\ntcpdump:x:100:100::/:/bin/sh\n"
        content: dict[str, bytes | Path] = {
            "etc/passwd": users,
            "bin/tcpdump": Path(program),
            **{file.lstrip("/"): Path(file).resolve() for file in files},
        }
        archives[REAL_TCPDUMP].write_bytes(_busybox_image(REAL_TCPDUMP, content))
    return archives


@pytest.fixture(scope="session")
def make_containerd(
    tmp_path_factory: pytest.TempPathFactory, image_archives: dict[str, Path]
) -> Callable[[], AbstractContextManager[RealContainerd]]:
    """Runs a real containerd for as long as a block runs, with a bridge network and cgroups of its own; all
    of it goes at the end."""
    numbers = count()

    @contextmanager
    def make() -> Iterator[RealContainerd]:
        _skip_unless_possible()
        base, number = tmp_path_factory.mktemp("containerd"), next(numbers)
        name, bridge = leftovers.containerd_name(number), leftovers.bridge_name(number)
        settings = containerd_settings(base, Path("/run") / name)
        settings.cni_conf_dir.mkdir()
        network = _network(bridge, base / "ipam", (os.getpid() + 83 * number) % 250)
        (settings.cni_conf_dir / "10-test.conflist").write_text(network)
        with ExitStack() as ending:
            ending.callback(shutil.rmtree, base)
            ending.callback(leftovers.remove_cgroups, name)
            ending.callback(leftovers.remove_link, bridge)
            ending.callback(lambda: asyncio.run(remove_leftovers(settings)))
            try:
                asyncio.run(_start(settings, list(image_archives.values())))
            except Exception as error:
                log = settings.log.read_text(errors="replace") if settings.log.exists() else ""
                raise AssertionError("\n".join([f"containerd: {error}", *log.splitlines()[-20:]])) from error
            ending.callback(lambda: asyncio.run(_end(settings)))
            yield RealContainerd(settings, f"/{name}")

    return make


@pytest.fixture(scope="session")
def containerd(
    make_containerd: Callable[[], AbstractContextManager[RealContainerd]],
) -> Iterator[RealContainerd]:
    """The one of all tests that end only what they began."""
    with make_containerd() as server:
        yield server


@pytest.fixture
async def containerd_runtime(containerd: RealContainerd) -> AsyncIterator[GrpcRuntime]:
    """A client of the real containerd, for the test's own event loop."""
    runtime = GrpcRuntime(containerd.socket)
    yield runtime
    await runtime.close()


@pytest.fixture
def until_done() -> UntilDone:
    """Between an exit and the end of its shim containerd may refuse to stop or remove: ask again, as the
    kubelet does. What is gone already is done.
    """

    async def until_done(call: Callable[[], Awaitable[None]]) -> None:
        async with asyncio.timeout(20):
            while True:
                try:
                    return await call()
                except RuntimeFault as fault:
                    if fault.code == "NOT_FOUND":
                        return None
                    assert fault.code == "UNKNOWN"
                    await asyncio.sleep(0.01)

    return until_done


def containerd_settings(base: Path, state: Path) -> ContainerdSettings:
    return ContainerdSettings(
        root=base / "root",
        state=state,
        log=base / "containerd.log",
        sandbox_image=PAUSE,
        cni_conf_dir=base / "cni",
    )


def _skip_unless_possible() -> None:
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root and {', '.join(missing or _NEEDED)}")


async def _start(settings: ContainerdSettings, archives: list[Path]) -> None:
    await Containerd(settings).start()
    for archive in archives:
        await load_images(settings.socket, archive)


async def _end(settings: ContainerdSettings) -> None:
    runtime = GrpcRuntime(str(settings.socket))
    for sandbox in await runtime.list_pod_sandbox():
        await runtime.stop_pod_sandbox(sandbox.id)
        await runtime.remove_pod_sandbox(sandbox.id)
    await runtime.close()
    await Containerd(settings).stop()


def _busybox_image(reference: str, more: Mapping[str, bytes | Path]) -> bytes:
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    listed = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = {f"bin/{applet}": Symlink("busybox") for applet in listed if applet != "busybox"}
    accounts = {"etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\n"}
    files: dict[str, bytes | Path | Symlink] = {
        **links,
        **accounts,
        "bin/busybox": busybox,
        "tmp/": b"",
        "root/": b"",
        **more,
    }
    return build_image(reference, files, ImageConfig(cmd=["sh"], env=["PATH=/bin"]))


def _network(bridge: str, addresses: Path, third: int) -> str:
    plugin = {
        "type": "bridge",
        "bridge": bridge,
        "isGateway": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(addresses),
            "ranges": [[{"subnet": f"10.213.{third}.0/24"}]],
        },
    }
    return json.dumps({"cniVersion": "0.4.0", "name": bridge, "plugins": [plugin]})


@pytest.fixture(scope="session")
def kubernetes_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of Kubernetes' own programs. Tests that need them are skipped where they are not."""
    upstream = os.environ.get("PODLING_UPSTREAM", "")
    if not upstream:
        pytest.skip("PODLING_UPSTREAM, the directory that unpacks Kubernetes' own programs, is not set")
    if not (Path(upstream) / "unpack").is_file():
        pytest.skip(f"there is no {upstream}/unpack to make Kubernetes' own programs with")
    directory = tmp_path_factory.mktemp("programs")
    try:
        subprocess.run([Path(upstream) / "unpack", directory], check=True, capture_output=True)
        yield directory
    finally:
        # A third of a gigabyte, which pytest would keep for three runs.
        shutil.rmtree(directory)
