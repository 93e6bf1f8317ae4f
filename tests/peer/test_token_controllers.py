"""R-SYS-8: bootstrap tokens sign `cluster-info` and end as by the kube-controller-manager.

Two API servers of podling are sent the same tokens; beside one run podling's controllers, beside the other
those of the kube-controller-manager.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.server import Asking, running
from ports import free_port

CONTROLLERS = "bootstrap-signer-controller,token-cleaner-controller"
INFOS, SECRETS = (f"/api/v1/namespaces/{name}" for name in ("kube-public/configmaps", "kube-system/secrets"))
LOOKS = 900
"""At most, a tenth of a second apart."""
CONFIG = "apiVersion: v1\nkind: Config\nclusters: []\n"
SIGNS = {"token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
TOKENS: dict[str, dict[str, str]] = {
    "aaaaaa": {},
    "bbbbbb": {"usage-bootstrap-signing": "false"},
    "cccccc": {"usage-bootstrap-signing": "TRUE"},
    "dddddd": {"expiration": "2000-01-01T00:00:00Z"},
    "eeeeee": {"expiration": "2999-01-01T00:00:00Z"},
    "ffffff": {"expiration": "2999-01-01T00:00:00+02:00"},
    "gggggg": {"expiration": "nonsense"},
    "hhhhhh": {"expiration": ""},
    "iiiiii": {"token-secret": "short"},
    "jjjjjj": {"token-secret": ""},
    "kkkkkk": {"token-id": "llllll"},
    "llllll": {"expiration": "2000-01-01"},
    "Upper1": {},
    "zzzzzz": {},
}
"""Each is an id, and what its secret says besides or otherwise. The last is served last."""
Outcome = tuple[dict[str, str], list[str]]
"""The data of `cluster-info`, and the secrets that are left."""


def send(asking: Asking) -> None:
    for namespace in ("kube-public", "kube-system"):
        asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    data = {"kubeconfig": CONFIG, "jws-kubeconfig-yyyyyy": "of no token", "other": "stays"}
    info = {"metadata": {"name": "cluster-info"}, "data": data}
    if asking.ask("POST", INFOS, info).code == 409:
        # The server has published its own.
        assert asking.ask("PUT", f"{INFOS}/cluster-info", info).code == 200
    for token, said in TOKENS.items():
        body = {
            "metadata": {"name": f"bootstrap-token-{token.lower()}"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": SIGNS | {"token-id": token} | said,
        }
        asking.ask("POST", SECRETS, body)
    asking.ask("POST", SECRETS, {"metadata": {"name": "other"}, "stringData": {"expiration": "nonsense"}})


def outcome(asking: Asking) -> Outcome:
    info = asking.ask("GET", f"{INFOS}/cluster-info").body
    left = asking.ask("GET", SECRETS).body["items"]
    return info["data"], [one["metadata"]["name"] for one in left]


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Outcome, Outcome]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    flags = {
        "controllers": CONTROLLERS,
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": there,
    }
    commands: dict[Path, list[Any]] = {
        there: [kubernetes_programs / "kube-controller-manager", *(f"--{k}={v}" for k, v in flags.items())],
        here: [sys.executable, "-m", "podling", "controllers"],
    }
    with ExitStack() as stack:
        asking = []
        for directory, command in commands.items():
            server = stack.enter_context(control_plane.podling(directory))
            asking.append(stack.enter_context(server.asking()))
            send(asking[-1])
            whole = [str(one) for one in [*command, f"--kubeconfig={server.kubeconfig}"]]
            controllers = stack.enter_context(running(whole, directory / "controllers.log"))
        for _ in range(LOOKS):
            theirs, ours = map(outcome, asking)
            if theirs == ours and "jws-kubeconfig-zzzzzz" in theirs[0]:
                break
            with suppress(subprocess.TimeoutExpired):
                controllers.wait(0.1)
        yield theirs, ours


def test_the_same_tokens_sign(both: tuple[Outcome, Outcome]) -> None:
    (theirs, _), (ours, _) = both
    assert ours == theirs
    assert "jws-kubeconfig-zzzzzz" in ours


def test_the_same_tokens_are_left(both: tuple[Outcome, Outcome]) -> None:
    (_, theirs), (_, ours) = both
    assert ours == theirs
    assert "bootstrap-token-dddddd" not in ours
