"""R-SYS-8: a controller that runs alone shows tokens of its own account."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.assemble.accounts import NAMESPACE, AccountLogin, in_process
from podling.client.client import Client
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.types.core import Namespace, Secret, ServiceAccount
from podling.model.types.node import Node
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.process.tls import Reread
from podling.storage.memory import MemoryStorage

TLS = Reread([], lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


class Served:
    def __init__(self, server: ApiServer, clock: Clock) -> None:
        self.server, self.clock = server, clock
        self.admin = self.client("admin", MASTERS)

    def client(self, user: str, *groups: str) -> Client:
        return Client(LocalTransport(self.server.handle, User(user, (*groups, AUTHENTICATED))))

    def login(self, user: str) -> AccountLogin:
        return AccountLogin(self.client(user), "node-controller", TLS, self.clock)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async def no_node(context: object, obj: object) -> Response:
        raise NotImplementedError

    clock = Clock()
    server = ApiServer.build(MemoryStorage(), KINDS, clock=clock, connector=no_node)
    await server.start()
    await server.have_default_roles()
    made = Served(server, clock)
    await made.admin.create(from_data({"metadata": {"name": NAMESPACE}}, Namespace))
    yield made
    server.close()


async def test_a_controller_may_do_no_more_than_its_role(served: Served) -> None:
    nodes = in_process(served.client, "node-controller")
    assert (await nodes.list(Node)).items == []
    for forbidden in (Secret, Namespace):
        with pytest.raises(StatusError, match='User "system:serviceaccount:kube-system:node-controller"'):
            await nodes.list(forbidden)


async def test_an_account_that_is_missing_is_made_and_its_token_is_kept_most_of_its_life(
    served: Served,
) -> None:
    login = served.login("system:kube-controller-manager")
    first = await login.present()
    assert first.authorization.startswith("Bearer ey")
    assert first.tls is TLS.get()
    assert await served.admin.get(ServiceAccount, "node-controller", NAMESPACE)
    served.clock.time += timedelta(minutes=47)
    assert await login.present() == first
    served.clock.time += timedelta(minutes=2)
    assert (await login.present()).authorization != first.authorization


async def test_a_token_that_is_refused_is_asked_for_once_more(served: Served) -> None:
    login = served.login("system:kube-controller-manager")
    refused = await login.present()
    await served.admin.delete(ServiceAccount, "node-controller", NAMESPACE)
    served.clock.time += timedelta(seconds=1)
    other = await login.renew(refused)
    assert other is not None
    assert other.authorization != refused.authorization
    assert await login.renew(refused) == other


async def test_who_may_not_ask_for_tokens_is_told_so(served: Served) -> None:
    with pytest.raises(OSError, match=r"no token of kube-system/node-controller: .*forbidden"):
        await served.login("somebody").present()
