"""The login `oidc` of kubectl and of the commands here: they ask an issuer the same, show the server the
same, and keep the same.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from issuer import Issuer, token
from podling.client import kubeconfig
from podling.client.kubeconfig import KubeconfigError

NOW = time.time()
OLD, GOOD, NEW, CLOSE = (
    token(end, name)
    for end, name in ((NOW - 9, "old"), (NOW + 3600, "good"), (NOW + 7200, "new"), (NOW + 5, "close"))
)
R1: dict[str, str] = {"refresh-token": "r1"}
ANSWER = {"id_token": NEW, "access_token": "a", "token_type": "bearer"}
CASES: list[tuple[dict[str, str], tuple[int, Any], dict[str, Any]]] = [
    ({"id-token": GOOD}, (500, ""), {}),
    ({"id-token": GOOD} | R1, (500, ""), {}),
    ({"id-token": OLD} | R1, (200, ANSWER | {"refresh_token": "r2"}), {}),
    ({"id-token": OLD} | R1, (200, ANSWER), {}),
    ({"id-token": CLOSE} | R1, (200, ANSWER), {}),
    (R1, (200, ANSWER), {}),
    (R1 | {"client-secret": ""}, (200, ANSWER), {}),
    (R1 | {"extra-scopes": "groups"}, (200, ANSWER), {}),
    (R1, (200, {"access_token": "a"}), {}),
    (R1, (200, {"id_token": NEW}), {}),
    (R1, (200, "no JSON"), {}),
    (R1, (400, {"error": "invalid_grant", "error_description": "it has ended"}), {}),
    ({"id-token": OLD}, (200, ANSWER), {}),
    ({"id-token": "x"} | R1, (200, ANSWER), {}),
    (R1 | {"client-id": ""}, (200, ANSWER), {}),
    (R1 | {"idp-issuer-url": ""}, (200, ANSWER), {}),
    (R1 | {"idp-certificate-authority-data": ""}, (200, ANSWER), {}),
    ({"id-token": GOOD}, (500, ""), {"token": "t0"}),
    ({"id-token": GOOD}, (500, ""), {"username": "ada", "password": "p"}),
]


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with Issuer(tmp_path_factory.mktemp("issuer")).running() as made:
        yield made


def by_kubectl(programs: Path, file: Path) -> bool:
    command = [str(programs / "kubectl"), "--kubeconfig", str(file), "get", "--raw", "/api"]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0


def by_podling(file: Path) -> bool:
    async def ask() -> bool:
        transport = kubeconfig.read(file).transport()
        try:
            return (await transport.request("GET", "/api", {}, None))[0] == 200
        finally:
            await transport.close()

    try:
        return asyncio.run(ask())
    except (OSError, KubeconfigError):
        return False


@pytest.mark.parametrize(("config", "answers", "user"), CASES)
def test_a_login_by_oidc_is_as_kubectl_s(
    kubernetes_programs: Path,
    issuer: Issuer,
    config: dict[str, str],
    answers: tuple[int, Any],
    user: dict[str, Any],
) -> None:
    issuer.answers = answers
    seen = []
    for ask in (lambda file: by_kubectl(kubernetes_programs, file), by_podling):
        issuer.asked.clear()
        file = issuer.kubeconfig(config, **user)
        is_answered = ask(file)
        seen.append((is_answered, [*issuer.asked], issuer.kept(file), file.stat().st_mode & 0o777))
        assert not file.with_name("config.lock").exists()
    assert seen[1] == seen[0]


@pytest.mark.parametrize("mode", ["Never", "IfAvailable", "Always", "", "Ever"])
@pytest.mark.parametrize("is_typed", [True, False])
def test_a_plugin_may_ask_who_types_where_kubectl_lets_it(
    kubernetes_programs: Path, issuer: Issuer, tmp_path: Path, mode: str, is_typed: bool
) -> None:
    """What a plugin is told, and whether it has the terminal."""
    plugin = tmp_path / "plugin"
    plugin.write_text('#!/bin/sh\ntest -t 0 && echo tty >&2\necho "$KUBERNETES_EXEC_INFO" >&2\nexit 1\n')
    plugin.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    exec_ = {"apiVersion": version, "command": str(plugin), "interactiveMode": mode}
    file = issuer.kubeconfig({}, **{"auth-provider": None, "exec": exec_})
    seen = []
    for command in (
        f"{kubernetes_programs / 'kubectl'} --kubeconfig {file} get --raw /api",
        f"{sys.executable} -m podling sessions --kubeconfig {file}",
    ):
        words = ["script", "-qec", command, "/dev/null"] if is_typed else ["sh", "-c", command]
        stdin = subprocess.DEVNULL
        done = subprocess.run(
            words,
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        said = (done.stdout + done.stderr).split()
        seen.append(
            (done.returncode, "tty" in said, [word for word in said if word.startswith('{"kind":"Exec')])
        )
    assert seen[1] == seen[0]
