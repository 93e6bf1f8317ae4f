"""Whom a server asks what users may do: by flags, or by a file that may change."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from podling.apiserver.authz.authorizers import Decision
from podling.apiserver.authz.modes import own_authorizers
from podling.apiserver.authz.node import NodeGraph
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.request.request import RequestInfo, User
from podling.assemble.authorization import authorization
from podling.assemble.settle import AuthorizationOptions
from podling.machine.start import StartError

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
ANN, PATH = User("ann"), RequestInfo("get", "/x")


def these(*types: str) -> str:
    return f"{HEAD}authorizers: [{', '.join(f'{{type: {one}, name: {one.lower()}}}' for one in types)}]\n"


class Told(logging.Handler):
    """What was logged, as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.said: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.put_nowait(record.getMessage())


async def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    """At once. What the server began with stays, as in Kubernetes."""
    file, other, told = tmp_path / "config.yaml", tmp_path / "other.yaml", Told()
    file.write_text(these("RBAC", "AlwaysDeny"))
    log = logging.getLogger("podling.assemble.followed")
    log.addHandler(told)
    log.setLevel(logging.INFO)
    try:
        async with authorization(AuthorizationOptions(steps_file=file)) as chosen, asyncio.timeout(30):
            (asked,) = chosen.choose(own_authorizers(RbacAuthorizer(), NodeGraph()))
            assert asked.authorize(ANN, PATH).reason == "Everything is forbidden."
            for text, said in (
                (these("RBAC", "AlwaysDeny", "AlwaysAllow"), "has changed"),
                (these("RBAC", "AlwaysDeny", "AlwaysAllow") + "# Said otherwise.\n", "has changed"),
                (these("Nope"), 'Unsupported value: "Nope"'),
                (these("AlwaysAllow"), "missing required types: [AlwaysDeny RBAC]"),
                (
                    these("RBAC", "Node", "AlwaysDeny"),
                    "authorizer type Node is not allowed if it was not enabled at initial server startup",
                ),
            ):
                other.write_text(text)
                other.rename(file)
                assert said in await told.said.get()
                assert asked.authorize(ANN, PATH).decision is Decision.ALLOW
            assert chosen.reloads == {True: 1, False: 3}
            other.write_text(these("RBAC", "AlwaysDeny"))
            other.rename(file)
            assert "has changed" in await told.said.get()
            assert asked.authorize(ANN, PATH).reason == "Everything is forbidden."
    finally:
        log.removeHandler(told)
        log.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Object 'Kind' is missing"),
        (HEAD, "authorizers: Required value: at least one authorization mode must be defined"),
        (f"{HEAD}authorizers: []\nauthorizers: []\n", "authorizers"),
        (these("RBAC").replace("name: rbac", "name: roles"), "expected name rbac for authorizer RBAC"),
    ],
)
async def test_no_server_starts_with_a_bad_file(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(StartError, match=why):
        async with authorization(AuthorizationOptions(steps_file=file)):
            pass


async def test_a_webhook_needs_a_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "webhook.conf"
    file.write_text("{}")
    options = AuthorizationOptions(("Webhook", "RBAC"), access_webhook=file)
    with pytest.raises(StartError, match=r"the authorization webhook of .*webhook\.conf cannot be used"):
        async with authorization(options):
            pass
