"""R-SYS-1, R-SYS-4: the steps every request takes, and what every answer carries."""

from __future__ import annotations

import gc
import gzip
import json
import tracemalloc
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver import pipeline
from podling.apiserver.assemble import ApiServer
from podling.apiserver.fairness.fairness import SCHEMA_HEADER
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Certificate, RepeatedRequests, Request, User
from podling.apiserver.request.response import Response
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.process.tls import Lifetime
from podling.process.waits import SHORT, aside
from podling.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"


class Hello:
    """A path of its own."""

    paths = ("/hello",)

    async def serve(self, context: RequestContext) -> Response | None:
        match context.info.path:
            case "/hello":
                return Response(200, b"hello", "text/plain")
            case "/bug":
                raise RuntimeError("nobody thought of this")
        return None


class Heard:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int]] = []

    def completed(self, context: RequestContext, code: int) -> None:
        self.requests.append((context.user.name, context.info.verb, code))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def server(api: Conversation, heard: Heard) -> ApiServer:
    return ApiServer.build(
        MemoryStorage(), [], clock=api.clock, connector=api.connector, paths=[Hello()], observers=[heard]
    )


async def test_headers_of_every_answer(api: Conversation) -> None:
    for answer in (await api.get(CONFIGS), await api.get("/nowhere")):
        assert len(answer.headers["Audit-Id"]) == 36
        assert answer.headers["Cache-Control"] == "no-cache, private"


async def test_an_audit_id_is_kept(api: Conversation) -> None:
    assert (await api.get(CONFIGS, Audit_Id="mine")).headers["Audit-Id"] == "mine"
    assert (await api.get(CONFIGS, Audit_Id="x" * 65)).headers["Audit-Id"] == "x" * 64


async def test_strangers_are_refused(api: Conversation) -> None:
    api.user = None
    answer = await api.get(CONFIGS)
    assert answer.status == 403
    assert answer.message == (
        'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" '
        'in API group "" in the namespace "default"'
    )
    assert (await api.get(CONFIGS, Authorization="Bearer x")).status == 401


async def test_a_refusal_comes_before_the_body_is_looked_at(api: Conversation) -> None:
    api.user = None
    assert (await api.post(CONFIGS, b"x" * (4 << 20))).status == 403


async def test_nothing_is_kept_of_what_is_asked_at_length(api: Conversation) -> None:
    """R-SYS-4: neither of a stranger, nor of one whose credentials are none, nor of a user."""
    root, megabyte = api.user, 1 << 20

    async def ask(number: int) -> None:
        much = f"{number:x}" * megabyte
        for user, headers in ((None, {}), (None, {"Authorization": much}), (root, {})):
            api.user = user
            await api.raw("GET", f"{CONFIGS}/{much}", Accept=f"application/json;q={much}", **headers)
            await api.raw("GET", f"{CONFIGS}?labelSelector={much}", User_Agent=much)
            await api.raw("PATCH", f"{CONFIGS}/a", b"{}", Content_Type=much)

    await ask(0)
    tracemalloc.start()
    try:
        for number in range(1, 5):
            await ask(number)
        # The thread beside the loop lets go of its last result when it has something else to do.
        await aside(SHORT + 1, int)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < megabyte


async def test_strangers_fill_no_cache(api: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "recall_query", None)
    monkeypatch.setattr(RepeatedRequests, "of", None)
    await api.server.have_default_roles()
    api.user = None
    assert (await api.get(f"{CONFIGS}?watch=1")).status == 403
    assert (await api.get(f"{CONFIGS}?watch=1", Authorization="Bearer x")).status == 401
    assert (await api.get("/version?x=y")).status == 404


ACCOUNT = "system:serviceaccount:default:default"


class Unread:
    """A body that tells whether it was asked for."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self) -> bytes:
        self.asked += 1
        return b'{"metadata":{"name":"a"}}'


@pytest.mark.parametrize(
    ("user", "headers", "path", "status", "asked"),
    [
        (None, {}, CONFIGS, 403, 0),
        (None, {"Authorization": "Bearer x"}, CONFIGS, 401, 0),
        (None, {}, "/healthz", 403, 0),
        (User("root", ("system:masters",)), {}, "/healthz", 200, 0),
        (User("root", ("system:masters",)), {"Impersonate-User": ACCOUNT}, CONFIGS, 403, 0),
        (User("root", ("system:masters",)), {}, CONFIGS, 201, 1),
    ],
)
async def test_a_body_is_read_when_it_is_known_who_sends_it_and_that_he_may(
    api: Conversation, user: User | None, headers: dict[str, str], path: str, status: int, asked: int
) -> None:
    unread = Unread()
    request = Request("POST", path, "", headers, user=user, read=unread.read)
    assert ((await api.server.handle(request)).status, unread.asked) == (status, asked)


async def test_a_certificate_is_an_identity(api: Conversation) -> None:
    subject = ((("commonName", "alice"),), (("organizationName", MASTERS),))
    response = await api.server.handle(Request("GET", CONFIGS, certificate=Certificate(subject)))
    assert response.status == 200
    response = await api.server.handle(Request("GET", CONFIGS, certificate=Certificate(subject[:1])))
    assert response.status == 403


class Rights:
    """What alice may do with config maps, as one binding has it."""

    ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    REF: Mapping[str, str] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"}

    def __init__(self, api: Conversation, alice: dict[str, Any]) -> None:
        self._api, self._alice = api, alice
        self._subjects = [{"apiGroup": self.REF["apiGroup"], "kind": "User", "name": "alice"}]

    async def grant(self) -> None:
        rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]
        assert (await self._api.post(CONFIGS, {"metadata": {"name": "a"}})).status == 201
        assert (
            await self._api.post(self.ROLES, {"metadata": {"name": "reads"}, "rules": rules})
        ).status == 201
        await self.bind()

    async def bind(self) -> None:
        bound = {"metadata": {"name": "alice"}, "roleRef": self.REF, "subjects": self._subjects}
        assert (await self._api.post(self.BINDINGS, bound)).status == 201

    async def unbind(self) -> None:
        assert (await self._api.delete(f"{self.BINDINGS}/alice")).status == 200

    async def narrow(self) -> None:
        rules = [{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}]
        assert (await self._api.patch(f"{self.ROLES}/reads", {"rules": rules})).status == 200

    async def asked(self, times: int = 3) -> set[int]:
        asked = [Request("GET", f"{CONFIGS}/a", **self._alice) for _ in range(times)]
        return {(await self._api.server.handle(request)).status for request in asked}


ALICE = Certificate(((("commonName", "alice"),),))


@pytest.mark.parametrize(
    "alice",
    [
        {"certificate": ALICE},
        {"user": User("alice", (AUTHENTICATED,))},
        {"user": User("root", (MASTERS,)), "headers": {"Impersonate-User": "alice"}},
    ],
    ids=["certificate", "user", "impersonated"],
)
async def test_a_right_that_is_revoked_is_refused_at_the_next_request(
    api: Conversation, alice: dict[str, Any]
) -> None:
    """Whatever was remembered of requests like it."""
    rights = Rights(api, alice)
    await rights.grant()
    for revoke in (rights.unbind, rights.narrow):
        assert await rights.asked() == {200}
        await revoke()
        assert await rights.asked() == {403}
        if revoke == rights.unbind:
            await rights.bind()


async def test_a_certificate_that_runs_out_is_refused_at_the_next_request(api: Conversation) -> None:
    now, second = api.clock.now(), timedelta(seconds=1)
    short = Certificate(
        ((("commonName", "alice"),), (("organizationName", MASTERS),)), lifetime=Lifetime(now, now + second)
    )
    answers = []
    for _ in range(4):
        answers.append((await api.server.handle(Request("GET", CONFIGS, certificate=short))).status)
        api.clock.move(0.5)
    assert answers == [200, 200, 200, 401]


async def test_a_changed_flow_schema_counts_for_the_next_request(api: Conversation) -> None:
    async def schemas_of(user: User) -> set[str]:
        asked = [Request("GET", CONFIGS, user=user) for _ in range(3)]
        return {(await api.server.handle(request)).headers[SCHEMA_HEADER] for request in asked}

    jane = User("jane", (AUTHENTICATED,))
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    subject = {"kind": "User", "user": {"name": "jane"}}
    spec = {
        "matchingPrecedence": 2,
        "priorityLevelConfiguration": {"name": "exempt"},
        "rules": [{"subjects": [subject], "resourceRules": [rule]}],
    }
    before = await schemas_of(jane)
    made = await api.post(
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", {"metadata": {"name": "jane"}, "spec": spec}
    )
    assert made.status == 201, made.body
    assert await schemas_of(jane) == {made.body["metadata"]["uid"]} != before


async def test_other_paths(server: ApiServer) -> None:
    root = User("root", (MASTERS, AUTHENTICATED))
    assert (await server.handle(Request("GET", "/hello", user=root))).body == b"hello"
    assert (await server.handle(Request("GET", "/hell", user=root))).status == 404
    response = await server.handle(Request("GET", "/", user=root))
    assert isinstance(response.body, bytes)
    index = json.loads(response.body)["paths"]
    assert {"/hello", "/metrics", "/livez/ping", "/openid/v1/jwks"} <= set(index)
    assert index == sorted(index)


async def test_a_bug_is_a_500_and_not_the_end(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    response = await server.handle(Request("GET", "/bug", user=User("root", (MASTERS, AUTHENTICATED))))
    assert isinstance(response.body, bytes)
    status = json.loads(response.body)
    assert (response.status, status["reason"]) == (500, "InternalError")
    assert status["message"] == "Internal error occurred: nobody thought of this"
    assert "GET /bug" in caplog.text


SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def test_whoever_may_acts_as_somebody_else(api: Conversation) -> None:
    await api.server.have_default_roles()
    answer = await api.post(SELF, {}, Impersonate_User="bob", Impersonate_Uid="u", Impersonate_Group="g")
    found = answer.body["status"]["userInfo"]
    assert found == {"username": "bob", "uid": "u", "groups": ["g", AUTHENTICATED]}


async def test_the_rights_are_those_of_whom_one_acts_as(api: Conversation) -> None:
    account = "system:serviceaccount:default:default"
    answer = await api.get(CONFIGS, Impersonate_User=account)
    assert answer.status == 403
    assert answer.message == (
        f'configmaps is forbidden: User "{account}" cannot list resource "configmaps" in API group "" '
        'in the namespace "default"'
    )


async def test_a_service_account_may_act_as_nobody_else(api: Conversation) -> None:
    await api.server.have_default_roles()
    api.user = User("system:serviceaccount:default:default", ("system:serviceaccounts", AUTHENTICATED))
    answer = await api.post(SELF, {}, Impersonate_User="root")
    assert answer.status == 403
    assert "cannot impersonate-on:user-info:create" in answer.message
    assert (await api.post(SELF, {})).status == 201


async def test_groups_of_nobody_are_a_bad_request(api: Conversation) -> None:
    answer = await api.get(CONFIGS, Impersonate_Group="g")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert answer.message.endswith("without impersonating a user name")


async def test_observers_hear_of_everything(server: ApiServer, heard: Heard) -> None:
    await server.handle(Request("GET", "/hello", user=User("root", (MASTERS, AUTHENTICATED))))
    await server.handle(Request("POST", "/api/v1/pods"))
    assert heard.requests == [("root", "get", 200), ("system:anonymous", "create", 403)]


@pytest.mark.parametrize(
    ("target", "accept", "end"),
    [
        ("/api/v1/namespaces/default", "", b"}\n"),
        ("/api/v1/namespaces/default?pretty=1", "", b"\n}"),
        ("/api/v1/namespaces/nobody", "", b"}\n"),
        ("/api/v1/namespaces/nobody", "text/html", b"\n}"),
    ],
)
async def test_an_object_ends_its_line_unless_it_is_indented(
    api: Conversation, target: str, accept: str, end: bytes
) -> None:
    answer = await api.raw("GET", target, **({"Accept": accept} if accept else {}))
    assert isinstance(answer.body, bytes) and (answer.body + answer.end).endswith(end)


async def test_long_answers_are_compressed_for_those_who_accept(api: Conversation) -> None:
    await api.post(CONFIGS, {"metadata": {"name": "a"}, "data": {"k": "v" * 200_000}})
    plain = await api.raw("GET", f"{CONFIGS}/a")
    packed = await api.raw("GET", f"{CONFIGS}/a", Accept_Encoding="deflate, gzip")
    assert isinstance(packed.body, bytes)
    assert packed.headers["Content-Encoding"] == "gzip" and len(packed.body) < 10_000
    assert isinstance(plain.body, bytes)
    assert gzip.decompress(packed.body) == plain.body + plain.end
    for refused in ("gzip;q=0", "gzip;q=1.0"):
        # Kubernetes knows no quality here.
        assert (await api.raw("GET", f"{CONFIGS}/a", Accept_Encoding=refused)).body == plain.body
    short = await api.raw("GET", "/api/v1/namespaces/default", Accept_Encoding="gzip")
    assert "Content-Encoding" not in short.headers


async def test_yaml_for_those_who_ask(api: Conversation) -> None:
    response = await api.raw("GET", "/api/v1/namespaces/default", Accept="application/yaml")
    assert response.content_type == "application/yaml"
    assert isinstance(response.body, bytes)
    assert response.body.startswith(b"apiVersion: v1\nkind: Namespace\n")


async def test_tables_for_kubectl(api: Conversation) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    await api.post(CONFIGS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    one = (await api.get(f"{CONFIGS}/a", Accept=table)).body
    many = (await api.get(CONFIGS, Accept=table)).body
    assert one["kind"] == many["kind"] == "Table"
    assert one["rows"] == many["rows"] and one["rows"][0]["cells"][:2] == ["a", 1]
    metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    listed = (await api.get(CONFIGS, Accept=metadata)).body
    assert listed["kind"] == "PartialObjectMetadataList" and "data" not in listed["items"][0]
    refused = await api.get(f"{CONFIGS}/a", Accept=metadata)
    assert refused.status == 406 and "the requested object is not a list" in refused.message
    metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    assert (await api.get(f"{CONFIGS}/a", Accept=metadata)).body["kind"] == "PartialObjectMetadata"
    refused = await api.get(CONFIGS, Accept=metadata)
    assert refused.status == 406 and "the requested object is a list" in refused.message
