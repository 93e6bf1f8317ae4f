"""Images from registries that want to know who asks, and from one that takes calls and never answers."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.build import ImageConfig, Symlink, build_image
from podling.cri.images.push import push_image
from podling.machine.node_runtime import settings

if TYPE_CHECKING:
    from e2e.conftest import Podling

USER, PASSWORD = "joe", "open sesame"
HTPASSWD = "joe:$2b$04$CGD7SlgBLl/NhKDqF4cteOGKX.Bqng25xx1.uA5QOHg.vI8sv1YDC\n"
"""The same, as a registry is told: bcrypt, as cheap as it gets."""
FOREVER = ["sh", "-c", "trap exit TERM; sleep 3600 & wait"]
BUSYBOX = "podling.test/busybox:1"


def pod(name: str, namespace: str, image: str, *secrets: str, **container: Any) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "app", "image": image, "command": FOREVER, **container}],
        "imagePullSecrets": [{"name": secret} for secret in secrets],
        "terminationGracePeriodSeconds": 1,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def waiting(reason: str) -> str:
    return f"jsonpath={{.status.containerStatuses[0].state.waiting.reason}}={reason}"


def wait(podling: Podling, condition: str, name: str, namespace: str) -> None:
    podling.kubectl(
        "wait", f"--for={condition}", f"pod/{name}", "-n", namespace, "--timeout=90s", timeout=100
    )


def events_of(podling: Podling, name: str, namespace: str) -> list[tuple[str, str]]:
    chosen = f"involvedObject.name={name}"
    found = podling.get("events", "-n", namespace, "--field-selector", chosen)["items"]
    return [(event["reason"], event["message"]) for event in found]


@contextmanager
def serving(directory: Path, storage: Path, auth: str = "") -> Iterator[str]:
    """A real registry; its host:port."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("needs docker-registry")
    directory.mkdir(exist_ok=True)
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as free:
        address = f"127.0.0.1:{free.server_address[1]}"
    config = directory / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {storage}}}}}\n"
        f"http: {{addr: '{address}'}}\nlog: {{level: error}}\n{auth}"
    )
    with (
        (directory / "log").open("w") as log,
        subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log) as server,
    ):
        try:
            asyncio.run(answered(server, f"http://{address}/v2/"))
            yield address
        finally:
            server.terminate()


async def answered(server: subprocess.Popen[bytes], url: str) -> None:
    """Returns when something answers there."""
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while server.poll() is None:
            with suppress(aiohttp.ClientConnectionError):
                async with session.get(url):
                    return
            await asyncio.sleep(0.05)
    pytest.fail("the registry ended")


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The host:port of a registry with `team/app:1`, for those who say who they are. No other test has that
    image: it would be private for all."""
    base = tmp_path_factory.mktemp("private")
    links = {"bin/sh": Symlink("busybox"), "bin/sleep": Symlink("busybox")}
    files: dict[str, bytes | Path | Symlink] = {
        "bin/busybox": Path(shutil.which("busybox") or ""),
        **links,
        "private": b"yes",
    }
    archive = base / "app.tar"
    archive.write_bytes(build_image("team/app:1", files, ImageConfig(env=["PATH=/bin"])))
    with serving(base / "open", base / "images") as address:
        asyncio.run(push_image(archive, f"{address}/team/app:1"))
    passwords = base / "htpasswd"
    passwords.write_text(HTPASSWD)
    auth = f"auth: {{htpasswd: {{realm: here, path: {passwords}}}}}\n"
    with serving(base / "closed", base / "images", auth) as address:
        yield address


def give_secret(podling: Podling, namespace: str, name: str, registry: str, password: str) -> None:
    auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
    told = json.dumps({"auths": {registry: {"auth": auth}}})
    podling.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": told},
        }
    )


def test_a_private_image_is_for_pods_with_its_secret(podling: Podling, namespace: str, private: str) -> None:
    """Also when it is on the node already: KubeletEnsureSecretPulledImages."""
    image = f"{private}/team/app:1"
    where = ("-n", namespace)
    give_secret(podling, namespace, "right", private, PASSWORD)
    give_secret(podling, namespace, "wrong", private, "guessed")
    podling.apply(pod("without", namespace, image), pod("guessing", namespace, image, "wrong"))
    for name in ("without", "guessing"):
        wait(podling, waiting("ImagePullBackOff"), name, namespace)
        said = events_of(podling, name, namespace)
        [failed] = {message for reason, message in said if message.startswith("Failed to pull image")}
        assert "401 Unauthorized" in failed or "authorization failed" in failed
        assert ("Failed", "Error: ErrImagePull") in said
        assert any(event == ("BackOff", f'Back-off pulling image "{image}"') for event in said)
    podling.apply(pod("with", namespace, image, "right"))
    wait(podling, "condition=Ready", "with", namespace)
    podling.apply(pod("again", namespace, image, "right", imagePullPolicy="Never"))
    wait(podling, "condition=Ready", "again", namespace)
    present = f'Container image "{image}" already present on machine and can be accessed by the pod'
    assert ("Pulled", present) in events_of(podling, "again", namespace)
    podling.apply(
        pod("stranger", namespace, image, imagePullPolicy="IfNotPresent"),
        pod("never", namespace, image, imagePullPolicy="Never"),
    )
    wait(podling, waiting("ImagePullBackOff"), "stranger", namespace)
    wait(podling, waiting("ErrImageNeverPull"), "never", namespace)
    podling.kubectl(
        "patch", "serviceaccount", "default", *where, "-p", '{"imagePullSecrets":[{"name":"right"}]}'
    )
    podling.apply(pod("member", namespace, image))
    wait(podling, "condition=Ready", "member", namespace)


class Silent(socketserver.ThreadingTCPServer):
    """Takes calls and never answers. `called` is set by the first, `left` when a caller has hung up."""

    daemon_threads = True

    def __init__(self) -> None:
        self.called, self.left = threading.Event(), threading.Event()
        super().__init__(("127.0.0.1", 0), _Listen)

    @property
    def image(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}/team/app:1"


class _Listen(socketserver.BaseRequestHandler):
    server: Silent

    def handle(self) -> None:
        self.server.called.set()
        while self.request.recv(4096):
            pass
        self.server.left.set()


@pytest.fixture
def silent() -> Iterator[Silent]:
    with Silent() as server:
        serve = threading.Thread(target=server.serve_forever)
        serve.start()
        yield server
        server.shutdown()
        serve.join()


async def nothing_left(podling: Podling, uid: str) -> None:
    """Returns when the runtime has nothing of the pod and pulls nothing."""
    runtime = GrpcRuntime(str(settings(podling.instance).socket))
    async with asyncio.timeout(30):
        while await runtime.list_pod_sandbox({"io.kubernetes.pod.uid": uid}):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert await runtime.pull_progress() == frozenset()
    await runtime.close()


def test_a_pull_that_hangs_ends_with_its_pod(podling: Podling, namespace: str, silent: Silent) -> None:
    """Others start meanwhile, and the runtime stops pulling."""
    where = ("-n", namespace)
    podling.apply(pod("hung", namespace, silent.image))
    assert silent.called.wait(60)
    podling.apply(pod("other", namespace, BUSYBOX))
    wait(podling, "condition=Ready", "other", namespace)
    wait(podling, waiting("ContainerCreating"), "hung", namespace)
    assert ("Pulling", f'Pulling image "{silent.image}"') in events_of(podling, "hung", namespace)
    uid = podling.get("pod", "hung", *where)["metadata"]["uid"]
    assert not silent.left.is_set()
    podling.kubectl("delete", "pod", "hung", *where, "--timeout=20s")
    assert silent.left.wait(20), "the runtime still waits for the registry"
    asyncio.run(nothing_left(podling, uid))


def test_a_pull_that_hangs_is_given_up(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path], silent: Silent
) -> None:
    impatient = make_podling()
    impatient.up("--image-pull-progress-deadline", "3s")
    impatient.apply(pod("hung", "default", silent.image))
    wait(impatient, waiting("ImagePullBackOff"), "hung", "default")
    assert silent.left.wait(20)
    [failed] = {
        message for _, message in events_of(impatient, "hung", "default") if "Failed to pull" in message
    }
    registry = silent.image.partition("/")[0]
    assert failed == (
        f'Failed to pull image "{silent.image}": rpc error: code = DeadlineExceeded desc = '
        f"pulling {silent.image} made no progress for 3s: registry {registry}, or its mirror, does not "
        "answer or sends nothing; see whether this node can reach it, or raise --image-pull-progress-deadline"
    )
    impatient.command("down")
