"""R-SYS-4: a write that turns out to create asks for leave to create, too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.authz.authorizers import ALLOW, NO_OPINION, Opinion
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import Request, RequestInfo, User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

EDITOR = User("ed", ("system:authenticated",))
CONFIG = "/api/v1/namespaces/default/configmaps/a"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
APPLY = "application/apply-patch+yaml"


class ChangesOnly:
    """Lets everyone change what is there."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if info.verb in ("patch", "update", "get") else NO_OPINION


@pytest.mark.parametrize(
    ("method", "path", "content_type", "kind", "version", "status"),
    [
        ("PATCH", f"{CONFIG}?fieldManager=m", APPLY, "ConfigMap", "v1", 403),
        ("PUT", LEASE, "application/json", "Lease", "coordination.k8s.io/v1", 403),
        ("PATCH", CONFIG, "application/merge-patch+json", "ConfigMap", "v1", 404),
        ("PUT", CONFIG, "application/json", "ConfigMap", "v1", 404),
    ],
)
async def test_who_may_only_change_creates_nothing(
    api: Conversation, method: str, path: str, content_type: str, kind: str, version: str, status: int
) -> None:
    server = ApiServer.build(
        api.storage, KINDS, clock=api.clock, connector=api.connector, authorizers=(ChangesOnly(),)
    )
    await server.start()
    body = json.dumps({"kind": kind, "apiVersion": version, "metadata": {"name": "a"}}).encode()
    path, _, query = path.partition("?")
    request = Request(method, path, query, {"Content-Type": content_type}, body, EDITOR)
    response = await server.handle(request)
    assert response.status == status
    if status == 403:
        assert isinstance(response.body, bytes)
        assert f'User "ed" cannot create resource "{kind.lower()}s"' in json.loads(response.body)["message"]
    server.close()
