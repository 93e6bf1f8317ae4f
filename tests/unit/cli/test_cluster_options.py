"""What the options of capture, cp, logs, sessions and why come to: each reaches what it is about."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from podling.cli import cluster as of_cluster
from podling.cli.main import main
from podling.debug.log_lines import Part
from podling.model.codec import json as api_json
from podling.model.types.pod import Pod
from podling.remote import capturing, copying, logs
from podling.remote.copying import Copied

CONTEXTS = (
    "[{name: c, context: {cluster: c, namespace: own}}, {name: other, context: {cluster: c, namespace: its}}]"
)
CONFIG = f"{{current-context: c, contexts: {CONTEXTS}, clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:1'}}}}]}}"
STATUS = {"name": "app", "restartCount": 0, "image": "i", "imageID": "", "containerID": "x://1"}
RUNNING = {**STATUS, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "ready": True}


def pod(name: str, *ephemeral: dict[str, Any], **status: Any) -> Pod:
    return api_json.from_data(
        {
            "metadata": {"name": name, "namespace": "own", "uid": name, "resourceVersion": "1"},
            "spec": {
                "containers": [{"name": "app", "image": "i"}],
                "ephemeralContainers": [{"name": one["name"], "image": "i"} for one in ephemeral],
                "nodeName": "n1",
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [RUNNING],
                "ephemeralContainerStatuses": [*ephemeral],
                **status,
            },
        },
        Pod,
    )


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class FakeCluster:
    """Pods, and which namespaces they were asked of."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = pods
        self.asked: list[str] = []

    async def get(self, namespace: str, name: str) -> Pod:
        self.asked.append(namespace)
        return self.pods[0]

    async def all(self, namespace: str = "", *, label_selector: str = "") -> list[Pod]:
        self.asked.append(namespace + label_selector)
        return [*self.pods]

    async def events(self, _: Pod) -> list[Any]:
        return []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    config = tmp_path / "config"
    config.write_text(CONFIG)

    def invoke(cluster: Any, *words: str) -> Result:
        def ask(_: Any, work: Callable[[Any], Awaitable[int]], first: Any = None) -> None:
            async def worked() -> int:
                return await work(cluster)

            sys.exit(asyncio.run(worked()))

        monkeypatch.setattr(of_cluster, "ask", ask)
        return CliRunner().invoke(main, [*words, "--kubeconfig", str(config)], color=True)

    return invoke


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--interface", "eth0"], "interface", "eth0"),
        (["-s", "96"], "snap_length", 96),
        (["--count", "3"], "packets", 3),
        (["--image", "x"], "image", "x"),
        (["--profile", "sysadmin"], "profile", "sysadmin"),
        (["--timeout", "7"], "timeout", 7.0),
        (["port", "80"], "filter", ("port", "80")),
        (["--context", "other"], "namespace", "its"),
        (["-n", "x"], "namespace", "x"),
    ],
)
def test_capture(
    run: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    field: str,
    value: object,
) -> None:
    async def capture(_: Any, asked: Any, take: Callable[[bytes], None], narrator: Any) -> int:
        assert getattr(asked, field) == value
        take(b"packets")
        narrator.say("told")
        return 3

    monkeypatch.setattr(capturing, "capture", capture)
    file = tmp_path / "x.pcap"
    done = run(None, "capture", "web", "--write", str(file), *words)
    assert (done.exit_code, done.output, file.read_bytes()) == (3, "told\n", b"packets")
    assert run(None, "capture", "web", "--write", str(file), "--quiet").output == ""


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--container", "x"], "container", "x"),
        (["--via", "exec"], "via", "exec"),
        (["--image", "x"], "image", "x"),
        (["--profile", "baseline"], "profile", "baseline"),
        (["--timeout", "7"], "timeout", 7.0),
        (["--resume"], "resume", True),
        (["--verify"], "verify", True),
        (["--no-verify"], "verify", False),
    ],
)
@pytest.mark.parametrize("direction", ["in", "out"])
def test_cp(
    run: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    field: str,
    value: object,
    direction: str,
) -> None:
    got: dict[str, object] = {}

    @asynccontextmanager
    async def files_of(
        _: Any, namespace: str, name: str, container: str, way: Any, __: Any
    ) -> AsyncIterator[str]:
        got.update(way._asdict(), container=container, namespace=namespace, pod=name)
        yield "files"

    async def copy(files: str, from_: str, to: str, narrator: Any, *, resume: bool, verify: bool) -> Copied:
        got.update(resume=resume, verify=verify)
        narrator.say(f"{from_} {to}")
        return Copied(1, 1, ["one"], 4)

    monkeypatch.setattr(copying, "files_of", files_of)
    monkeypatch.setattr(copying, "download" if direction == "out" else "upload", copy)
    paths = ["ns/web:/a", "b"] if direction == "out" else ["a", "ns/web:/b"]
    done = run(None, "cp", *paths, *words)
    said = "/a b\n" if direction == "out" else "a /b\n"
    assert (done.exit_code, done.output) == (1, f"{said}one\nand 4 more\n")
    assert (got[field], got["namespace"], got["pod"]) == (value, "ns", "web")
    assert run(None, "cp", *paths, "--quiet").output == "one\nand 4 more\n"


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--container", "app"], "containers", ("app",)),
        (["--previous"], "previous", True),
        (["--since", "90s"], "since", 90.0),
        (["--since-time", "2026-01-01T00:00:00Z"], "since_time", "2026-01-01T00:00:00Z"),
        (["--tail", "5"], "tail", 5),
        (["--tail", "-1"], "tail", None),
    ],
)
def test_which_logs(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, words: list[str], field: str, value: object
) -> None:
    async def read_all(_: Any, pods: list[Pod], asked: Any, *__: Any) -> bool:
        assert getattr(asked, field) == value and len(pods) == 1
        return False

    monkeypatch.setattr(logs, "read_all", read_all)
    assert run(FakeCluster(pod("web")), "logs", "web", *words).exit_code == 1


@pytest.mark.parametrize(
    ("words", "asked", "shown"),
    [
        (["web"], "own", "line\n"),
        (["web", "--prefix"], "own", "[pod/web/app] line\n"),
        (["web", "--timestamps"], "own", "T line\n"),
        (["--selector", "a=b"], "owna=b", "[pod/web/app] line\n"),
        (["--selector", "a=b", "--no-prefix"], "owna=b", "line\n"),
        (["--all-namespaces"], "", "[pod/own/web/app] line\n"),
        (["--all-namespaces", "--follow"], "", "[pod/own/web/app] line\n"),
    ],
)
def test_how_logs_are_shown(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, words: list[str], asked: str, shown: str
) -> None:
    from podling.remote import terminal

    written = io.BytesIO()

    def say(show: logs.Show) -> None:
        show(logs.Source(0, "own", "web", "app"), [Part("T", b"line\n")])

    async def read_all(_: Any, __: Any, ___: Any, show: logs.Show, tell: Any) -> bool:
        say(show)
        return True

    async def follow(follower: Any, pods: Any, watched: list[logs.Watched]) -> None:
        assert [one.namespace for one in watched] == [""]
        say(follower._show)

    monkeypatch.setattr(logs, "read_all", read_all)
    monkeypatch.setattr(logs.Follower, "follow", follow)
    monkeypatch.setattr(terminal, "write", lambda _, data: written.write(data))
    cluster = FakeCluster(pod("web"))
    done = run(cluster, "logs", *words)
    assert (done.exit_code, done.output, cluster.asked) == (0, "", [asked])
    assert written.getvalue().decode() == shown


def test_too_many_logs_are_not_followed(run: Callable[..., Result]) -> None:
    cluster = FakeCluster(pod("one"), pod("two"))
    done = run(cluster, "logs", "--selector", "a=b", "--follow", "--max-log-requests", "1")
    assert done.exit_code == 1 and "2 logs are more than --max-log-requests=1" in done.output


def test_sessions(run: Callable[..., Result]) -> None:
    ended = {**STATUS, "name": "old", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    cluster = FakeCluster(pod("web", {**RUNNING, "name": "debug"}, ended))
    assert run(cluster, "sessions", "--output", "name").output == "own/web/debug\nown/web/old\n"
    assert run(cluster, "sessions", "--running", "-o", "name").output == "own/web/debug\n"
    assert [one["container"] for one in json.loads(run(cluster, "sessions", "-o", "json").output)] == [
        "debug",
        "old",
    ]
    assert yaml.safe_load(run(cluster, "sessions", "-o", "yaml").output)[1]["container"] == "old"
    assert "NODE" in run(cluster, "sessions", "-o", "wide").output.splitlines()[0]
    cluster.asked.clear()
    run(cluster, "sessions", "--all-namespaces")
    assert cluster.asked == [""]


def test_why(run: Callable[..., Result]) -> None:
    ready = FakeCluster(pod("web", **READY))
    assert json.loads(run(ready, "why", "web", "--output", "json").output)["is_ready"] is True
    assert yaml.safe_load(run(ready, "why", "web", "-o", "yaml").output)["is_ready"] is True
    watched = run(ready, "why", "web", "--watch")
    assert watched.exit_code == 0 and watched.output.startswith("\x1b[H\x1b[2Jweb is ready.")
