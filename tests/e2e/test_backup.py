"""`podling backup` while writes go on, and `podling restore`: elsewhere, and in place of what came since.

An API server alone shows it; what becomes of pods is in `test_lifecycle.py`.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Part, Podling


@pytest.fixture
def serve(make_part: Callable[..., Part]) -> Iterator[Callable[[Podling], Part]]:
    """Starts the API server of a podling alone."""
    parts: list[Part] = []

    def start(podling: Podling) -> Part:
        directory = podling.instance.data_dir
        directory.mkdir(exist_ok=True)
        at = ["--data-dir", str(directory), "--port", str(podling.port)]
        part = make_part(["apiserver", *at], directory.with_name("apiserver.log"))
        part.start("API server on ")
        parts.append(part)
        return part

    yield start
    for part in parts:
        part.end(signal.SIGKILL)


def names(podling: Podling) -> set[str]:
    return {item["metadata"]["name"] for item in podling.get("configmaps", "-n", "default")["items"]}


def create(podling: Podling, name: str) -> None:
    podling.kubectl("create", "configmap", name, "-n", "default")


def test_all_that_was_acknowledged_before_it_began_is_in_it(
    make_podling: Callable[[], Podling], serve: Callable[[Podling], Part], tmp_path: Path
) -> None:
    here, there, backup = make_podling(), make_podling(), tmp_path / "backup.tar"
    serving = serve(here)
    here.kubectl("create", "namespace", "default", check=False)
    acknowledged: list[str] = []
    enough, done = threading.Event(), threading.Event()

    def write() -> None:
        try:
            while not done.is_set():
                create(here, f"config-{len(acknowledged)}")
                acknowledged.append(f"config-{len(acknowledged)}")
                if len(acknowledged) == 3:
                    enough.set()
        finally:
            enough.set()

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        try:
            enough.wait()
            before = set(acknowledged)
            said = here.command("backup", str(backup)).stdout
        finally:
            done.set()
        # Else a write that was refused would be told of as one that never came.
        writing.result()
    assert said.startswith(f"{backup}: ")
    create(here, "since")
    newest = here.get("configmap", "since", "-n", "default")["metadata"]["resourceVersion"]

    refused = here.command("restore", str(backup), check=False)
    assert (refused.returncode, "podling is already running" in refused.stderr) == (1, True)
    there.command("restore", str(backup))
    serve(there)
    assert before <= names(there) <= set(acknowledged)
    # Its authority and keys are those of the other: kubeconfigs and tokens are good for both.
    config = json.loads(here.kubectl("config", "view", "--raw", "-o", "json").stdout)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{there.port}"
    (tmp_path / "config").write_text(json.dumps(config))
    assert there.kubectl("get", "--raw", "/readyz", "--kubeconfig", str(tmp_path / "config")).stdout == "ok"

    serving.end()
    assert here.command("restore", str(backup), check=False).returncode == 1
    here.command("restore", str(backup), "--force")
    serve(here)
    assert names(here) == names(there)
    # Whoever watched is told that time went back.
    path = f"/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion={newest}"
    told = json.loads(here.kubectl("get", "--raw", path).stdout.splitlines()[0])
    assert (told["type"], told["object"]["code"], told["object"]["reason"]) == ("ERROR", 410, "Expired")
    create(here, "later")
    assert int(here.get("configmap", "later", "-n", "default")["metadata"]["resourceVersion"]) > int(newest)
