"""Credential plugins: programs that are really run, for requests to a server over TLS."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from podling.client import exec_plugin, kubeconfig
from podling.client.exec_plugin import Credential, Plugin, PluginError, credential, run
from podling.client.https import HttpsTransport
from podling.model.errors import StatusError

if TYPE_CHECKING:
    from unit.client.conftest import Doorman, HandClock

V1 = "client.authentication.k8s.io/v1"
PATIENCE = 60
"""Seconds for what never comes if it is broken, and soon if not: a busy machine is no fault."""


class Helper:
    """A program that answers with `answer` and notes each run in `runs`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.program = directory / "helper"
        self.script("echo run >> runs; cat answer")

    def script(self, words: str) -> None:
        self.program.write_text(f"#!/bin/sh\ncd {self._directory}\n{words}\n")
        self.program.chmod(0o755)

    def answers(self, **status: Any) -> None:
        said = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
        (self._directory / "answer").write_text(json.dumps(said))

    @property
    def runs(self) -> int:
        return len((self._directory / "runs").read_text().splitlines())

    def user(self, **more: Any) -> dict[str, Any]:
        return {"exec": {"apiVersion": V1, "command": "./helper", "interactiveMode": "Never", **more}}


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    return Helper(tmp_path)


@asynccontextmanager
async def transport(file: Path, clock: Any = None) -> AsyncIterator[HttpsTransport]:
    given = {"clock": clock} if clock else {}
    made = kubeconfig.read(file, **given).transport()
    try:
        yield made
    finally:
        await made.close()


async def ask(made: HttpsTransport) -> int:
    return (await made.request("GET", "/api", {}, None))[0]


async def test_one_run_is_enough_for_many_requests(doorman: Doorman, helper: Helper) -> None:
    helper.answers(token="t0")
    async with transport(doorman.kubeconfig(helper.user())) as made, asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(ask(made))
    assert doorman.who == [("", "Bearer t0")] * 5
    assert helper.runs == 1


async def test_a_certificate_is_handed_out(doorman: Doorman, helper: Helper) -> None:
    pair = doorman.authority.client("ada", "ada")
    pem = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    helper.answers(**pem)
    async with transport(doorman.kubeconfig(helper.user())) as made:
        assert await ask(made) == 200
    assert doorman.who == [("ada", "")]


async def test_a_credential_that_has_expired_is_asked_for_anew(
    doorman: Doorman, helper: Helper, clock: HandClock
) -> None:
    helper.answers(token="first", expirationTimestamp="2026-01-02T03:05:05Z")
    async with transport(doorman.kubeconfig(helper.user()), clock) as made:
        await ask(made)
        helper.answers(token="second")
        clock.advance(59)
        await ask(made)
        clock.advance(1)
        await ask(made)
        clock.advance(10_000)
        await ask(made)
    assert [shown for _, shown in doorman.who] == [
        f"Bearer {t}" for t in ("first", "first", "second", "second")
    ]
    assert helper.runs == 2


async def test_a_credential_that_was_refused_is_asked_for_anew(doorman: Doorman, helper: Helper) -> None:
    """The request is sent once more: nothing was done for it."""
    helper.answers(token="first")
    async with transport(doorman.kubeconfig(helper.user())) as made:
        assert await ask(made) == 200
        doorman.refused = {"Bearer first"}
        helper.answers(token="second")
        assert await ask(made) == 200
    assert [shown for _, shown in doorman.who] == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_certificate_that_was_refused_is_asked_for_anew(doorman: Doorman, helper: Helper) -> None:
    pairs = {name: doorman.authority.client(name, name) for name in ("old", "new")}
    pems = {
        name: {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
        for name, pair in pairs.items()
    }
    helper.answers(**pems["old"])
    async with transport(doorman.kubeconfig(helper.user())) as made:
        assert await ask(made) == 200
        doorman.refused = {"old"}
        helper.answers(**pems["new"])
        assert await ask(made) == 200
    assert [name for name, _ in doorman.who] == ["old", "old", "new"]


async def test_a_watch_that_was_refused_begins_with_another(doorman: Doorman, helper: Helper) -> None:
    helper.answers(token="first")
    async with transport(doorman.kubeconfig(helper.user())) as made:
        await ask(made)
        doorman.refused = {"Bearer first"}
        helper.answers(token="second")
        async with aclosing(made.stream("/api", {})) as stream:
            assert [piece async for piece in stream] == [b"come in"]


async def test_many_that_were_refused_share_one_run(doorman: Doorman, helper: Helper) -> None:
    helper.answers(token="first")
    async with transport(doorman.kubeconfig(helper.user())) as made:
        await ask(made)
        doorman.refused = {"Bearer first"}
        helper.answers(token="second")
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(ask(made)) for _ in range(5)]
    assert [task.result() for task in asking] == [200] * 5
    assert helper.runs == 2


async def test_a_plugin_with_nothing_better_leaves_the_refusal(doorman: Doorman, helper: Helper) -> None:
    doorman.refused = {"Bearer first"}
    helper.answers(token="first")
    async with transport(doorman.kubeconfig(helper.user())) as made:
        assert await ask(made) == 401
        with pytest.raises(StatusError):
            async with aclosing(made.stream("/api", {})) as stream:
                await anext(stream)
    assert len(doorman.asked) == 2


async def test_a_plugin_that_fails_is_named_and_tried_again(doorman: Doorman, helper: Helper) -> None:
    """A server that cannot be asked is all its callers have to know of: an OSError."""
    helper.script("exit 3")
    async with transport(doorman.kubeconfig(helper.user())) as made:
        with pytest.raises(OSError, match=r"exec plugin .*/helper: it ended with 3"):
            await ask(made)
        helper.script("cat answer")
        helper.answers(token="t0")
        assert await ask(made) == 200


async def test_what_a_plugin_is_told(
    doorman: Doorman, helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "inherited")
    helper.script(
        'printf "%s\\n" "$KUBERNETES_EXEC_INFO" "$OURS" "$THEIRS" "$*" > told; cat > stdin; cat answer'
    )
    helper.answers(token="t0")
    user = helper.user(
        args=["get", "token"], env=[{"name": "THEIRS", "value": "given"}], provideClusterInfo=True
    )
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "here"}}
    more = {"tls-server-name": "api.example", "extensions": [{"name": "other", "extension": 1}, extension]}
    async with transport(doorman.kubeconfig(user, **more)) as made:
        assert await ask(made) == 200
    info, *rest = (doorman.directory / "told").read_text().splitlines()
    assert rest == ["inherited", "given", "get token"]
    assert (doorman.directory / "stdin").read_text() == ""
    said = json.loads(info)
    assert said["spec"]["cluster"].pop("certificate-authority-data")
    assert said == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {
            "interactive": False,
            "cluster": {
                "server": f"https://127.0.0.1:{doorman.port}",
                "tls-server-name": "api.example",
                "config": {"audience": "here"},
            },
        },
    }


def test_a_plugin_is_not_told_of_the_cluster_unless_it_asks() -> None:
    info = json.loads(Plugin(("true",), {}, V1).info())
    assert info == {"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}}


async def test_v1beta1_needs_no_interactive_mode(doorman: Doorman, helper: Helper) -> None:
    """As the files of several clouds still have it."""
    beta = "client.authentication.k8s.io/v1beta1"
    helper.script(f'echo \'{{"kind":"ExecCredential","apiVersion":"{beta}","status":{{"token":"t0"}}}}\'')
    user = helper.user(apiVersion=beta, interactiveMode=None)
    async with transport(doorman.kubeconfig(user)) as made:
        assert await ask(made) == 200


@asynccontextmanager
async def ended(fifo: Path) -> AsyncIterator[None]:
    """In the block something opens `fifo` for writing; nothing has it open any more at the end."""
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield
        os.set_blocking(reading, True)
        while await asyncio.wait_for(asyncio.to_thread(os.read, reading, 100), PATIENCE):
            pass
    finally:
        os.close(reading)


async def test_a_plugin_that_hangs_is_ended_with_what_it_began(helper: Helper, tmp_path: Path) -> None:
    helper.script("exec 3> alive; sleep 3600 & wait")
    async with ended(tmp_path / "alive"):
        with pytest.raises(PluginError, match=r"no answer within 0.2 s"):
            await run(Plugin((str(helper.program),), {}, V1), deadline=0.2)


async def test_one_that_is_not_waited_for_any_more_lets_the_next_ask(
    doorman: Doorman, helper: Helper
) -> None:
    os.mkfifo(doorman.directory / "begun")
    helper.script("exec 3> alive; sleep 3600 & echo > begun; wait")
    async with transport(doorman.kubeconfig(helper.user())) as made, ended(doorman.directory / "alive"):
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(ask(made))
            await asyncio.to_thread((doorman.directory / "begun").read_text)
            asking.cancel()
        helper.script("cat answer")
        helper.answers(token="t0")
        assert await asyncio.wait_for(ask(made), PATIENCE) == 200


async def test_one_that_is_given_up_before_a_thread_is_free_for_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    begin, free = exec_plugin._begin, threading.Event()

    def noted(plugin: Plugin, *, is_interactive: bool) -> subprocess.Popen[bytes]:
        begun.append(begin(plugin, is_interactive=is_interactive))
        return begun[-1]

    monkeypatch.setattr(exec_plugin, "_begin", noted)
    with ThreadPoolExecutor(1) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        threads.submit(free.wait)
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(run(Plugin(("sleep", "3600"), {}, V1)))
            await asyncio.sleep(0)
            asking.cancel()
        free.set()
    (process,) = begun
    assert process.returncode == -signal.SIGKILL


def answered(**said: Any) -> bytes:
    return json.dumps({"kind": "ExecCredential", "apiVersion": V1, **said}).encode()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "truncated"),
        (b"login first", "malformed"),
        (answered(kind="Status"), 'kind is "Status"'),
        (answered(apiVersion="client.authentication.k8s.io/v1beta1"), "answered client.*v1beta1"),
        (answered(), "without a status"),
        (answered(status={}), "neither a token nor a certificate"),
        (answered(status={"token": ""}), "neither a token nor a certificate"),
        (answered(status={"clientKeyData": "x"}), "only one of clientCertificateData and clientKeyData"),
        (answered(status={"token": 17}), r"Expected `str \| null`, got `int` - at `\$.status.token`"),
        (answered(status={"token": "two\nlines"}), "status.token: .*control characters"),
        (answered(status={"token": "t", "expirationTimestamp": "soon"}), "status.expirationTimestamp: "),
        (
            answered(status={"token": "t", "expirationTimestamp": "2026-01-02T03:04:05"}),
            "expirationTimestamp",
        ),
    ],
)
def test_an_answer_that_is_no_credential_says_why(answer: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        credential(answer, V1)


@given(
    some.binary()
    | some.recursive(
        some.none() | some.text() | some.integers(),
        lambda inner: some.dictionaries(some.sampled_from(["kind", "apiVersion", "status", "token"]), inner),
    ).map(lambda value: json.dumps(value).encode())
)
def test_only_the_declared_error_escapes(answer: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(credential(answer, V1), Credential)
