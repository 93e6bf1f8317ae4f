"""R-SYS-8: a path is read as Kubernetes reads it, `.`, `..`, `//` and escapes included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peer.named_differences import BAD_PATHS, MANY_CLAUSES, OF_GO_PROGRAMS, PARTS
from peer.server import USER_AGENT, Answer, Server

GETS = """
/api /api/ /api/v1 /api/v1/ /api//v1 //api/v1 /api/./v1/pods /api/v1/.. /api/v1/../v1/pods /api/v2 /api/v2/
/api/v2/pods /api/V1 /API/v1 /api%2Fv1/pods /api/v1%2Fpods /%61pi/v1/nope /api/v1/nope /api/v1/Pods /apis
/apis/ /apis/policy /apis/policy/ /apis/policy/v1 /apis/policy/v9 /apis/policy/v9/x /apis/policy//v1
/apis//policy/v1 /apis/nope /apis/nope/v1 /apis/nope/v1/x /apis/../policy /.. /. /../api /nonsense
/index.html /favicon.ico /logs /version /version/ /healthz /healthz/ /healthz/ping /healthz//ping /livez/
/readyz/ /openapi /openapi/ /openapi/v2/ /swagger.json /openid/v1/jwks/ /.well-known/openid-configuration/
/api/v1/pods/ /api/v1/pods// /api/v1//pods /api/v1/namespaces/default/ /api/v1/namespaces/default/..
/api/v1/namespaces/.. /api/v1/namespaces/../status /api/v1/namespaces//pods /api/v1/namespaces/default//pods
/api/v1/namespaces/default/pods/.. /api/v1/namespaces/default/pods/. /api/v1/namespaces/default/pods/%2e%2e
/api/v1/namespaces/default/pods//x /api/v1/namespaces/default/pods/x/ /api/v1/namespaces/default/pods/x//
/api/v1/namespaces/default/pods/x/status/ /api/v1/namespaces/default/pods/x/status/y
/api/v1/namespaces/default/pods/x/nope /api/v1/namespaces/default/pods/x//log
/api/v1/namespaces/default/nope /api/v1/namespaces/default%2Fpods /api/v1/namespaces/default%2fpods/x
/api/v1/namespaces/a%2Fb/pods /api/v1/namespaces/default/pods/a%252Fb /api/v1/namespaces/default/pods/a%25b
/api/v1/namespaces/default/pods/a%20b /api/v1/namespaces/default/pods/%2F
/api/v1/namespaces/default/pods/%2Fx /api/v1/namespaces/default/pods;x
/api/v1/namespaces/default/pods/x?a=%zz /api/v1/namespaces/default/configmaps/kube-root-ca.crt%2F..
/api/v1/namespaces/default/namespaces /api/v1/namespaces/default/namespaces/default
/api/v1/namespaces/default/nodes /api/v1/namespaces/default/namespaces/default/status
/api/v1/namespaces/A_B/pods /api/v1/nodes/.. /api/v1/nodes/a%2Fb /api/v1/nodes/../proxy
/api/v1/watch/pods/../x
"""
OTHERS = """
POST /api/v1/namespaces/..
POST /api/v1/namespaces/default/namespaces
DELETE /api/v1/namespaces/..
OPTIONS *
OPTIONS /api
OPTIONS /api/v1/pods
OPTIONS /
OPTIONS /healthz
HEAD /api/v1
HEAD /
TRACE /api/v1/pods
PUT /api
POST /api/v1
POST /api/v9
POST /version
PATCH /api/v1/pods
PUT /api/v1/pods
POST /healthz
OPTIONS /nonsense
"""
ASKED = [
    *(("GET", target) for target in GETS.split()),
    *((method, target) for method, _, target in (ask.partition(" ") for ask in OTHERS.strip().splitlines())),
]


@pytest.mark.parametrize(("method", "target"), ASKED)
def test_a_path_means_what_it_means_to_kubernetes(
    kubernetes: Server, podling: Server, method: str, target: str
) -> None:
    theirs, ours = (server.ask(method, target) for server in (kubernetes, podling))
    assert _gist(ours) == _gist(theirs)


@pytest.mark.parametrize("target", BAD_PATHS.what)
def test_what_is_answered_otherwise(kubernetes: Server, podling: Server, target: str) -> None:
    assert (kubernetes.ask("GET", target).code, podling.ask("GET", target).code) == (500, 400)


@pytest.mark.parametrize("target", OF_GO_PROGRAMS.what)
def test_pages_that_podling_has_not(kubernetes: Server, podling: Server, target: str) -> None:
    assert (kubernetes.ask("GET", target).code, podling.ask("GET", target).code) == (200, 404)


@pytest.mark.parametrize("target", PARTS.what)
def test_documents_that_podling_gives_whole(kubernetes: Server, podling: Server, target: str) -> None:
    theirs, ours = (server.ask("GET", target, Range="bytes=0-") for server in (kubernetes, podling))
    assert (theirs.code, ours.code) == (206, 200)


def test_so_many_clauses_are_read(kubernetes: Server, podling: Server) -> None:
    [one_too_many] = MANY_CLAUSES.what
    for others, code in ((one_too_many - 2, 200), (one_too_many - 1, 406)):
        accept = ", ".join([*["text/x"] * others, "application/json"])
        theirs, ours = (server.ask("GET", "/api/v1/pods", Accept=accept) for server in (kubernetes, podling))
        assert (theirs.code, ours.code) == (200, code)


@pytest.mark.parametrize(
    "target", ["/version", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1/pods", "/"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_said_of_no_body_is_read(
    kubernetes: Server, podling: Server, method: str, target: str
) -> None:
    for said in (
        *("text/xml", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*"),
        *("text/xml, application/json", " application/json ; q=0", "application/jsonx", "Application/JSON"),
    ):
        theirs, ours = (
            server.ask(method, target, None, Content_Type=said) for server in (kubernetes, podling)
        )
        assert _gist(ours) == _gist(theirs), said
        assert theirs.code != 415 or ours.body == theirs.body
        # It is looked at before what is asked for.
        theirs, ours = (
            server.ask(method, target, None, Content_Type=said, Accept="text/html")
            for server in (kubernetes, podling)
        )
        assert ours.code == theirs.code, said


def _gist(answer: Answer) -> tuple[int, str, str]:
    """Status and kind, and in what words it is refused."""
    body = answer.body
    if isinstance(body, dict):
        return answer.code, body.get("kind", ""), body.get("message", "")
    return answer.code, "", body or "" if answer.code >= 400 else ""


JANE = {"Impersonate-User": "jane"}
NODE = {"Impersonate-User": "system:node:b", "Impersonate-Group": "system:nodes"}


@pytest.mark.parametrize(
    ("code", "method", "target", "body", "headers"),
    [
        (403, "GET", "/api/v1/pods", None, JANE),
        (403, "POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}, JANE),
        (403, "GET", "/metrics", None, JANE),
        (403, "GET", "/api/v1/pods", None, {**JANE, "Accept": "application/yaml"}),
        (400, "GET", "/api/v1/namespaces", None, {"Impersonate-Group": "x"}),
        (403, "POST", "/api/v1/nodes", {"metadata": {"name": "c"}}, NODE),
        (403, "DELETE", "/api/v1/namespaces/kube-system", None, {}),
        (404, "GET", "/api/v1/namespaces/default/pods/x", None, {}),
        (404, "GET", "/nope", None, {}),
        (405, "PATCH", "/api/v1/pods", {}, {}),
        (422, "POST", "/api/v1/namespaces", {"metadata": {"name": "A"}}, {}),
        (200, "GET", "/healthz", None, {}),
    ],
)
def test_which_answers_no_browser_may_guess_at(
    kubernetes: Server, podling: Server, code: int, method: str, target: str, body: Any, headers: Any
) -> None:
    theirs, ours = (server.ask(method, target, body, **headers) for server in (kubernetes, podling))
    name = "X-Content-Type-Options"
    assert (ours.code, ours.headers.get(name)) == (theirs.code, theirs.headers.get(name))
    assert theirs.code == code


MAPS = "/api/v1/namespaces/default/configmaps"
TABLE, METADATA, GROUPS = (
    f"application/json;as={kind};v={version};g={group}"
    for kind, version, group in (
        ("Table", "v1", "meta.k8s.io"),
        ("PartialObjectMetadata", "v1", "meta.k8s.io"),
        ("APIGroupDiscoveryList", "v2", "apidiscovery.k8s.io"),
    )
)
BROWSER, ZIPPED = {"User-Agent": "curl/8"}, {"Accept-Encoding": "gzip"}
WRITTEN = [
    *(
        ("GET", target, None, headers)
        for target in ("/", "/version", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v2")
        for headers in ({}, {"Accept": "application/yaml"}, BROWSER)
    ),
    *(("GET", target, None, {"Accept": GROUPS}) for target in ("/api", "/apis", "/api/v1")),
    *(
        ("GET", f"/openapi/v3{group}", None, headers)
        for group in ("", "/api/v1")
        for headers in ({}, BROWSER)
    ),
    *(
        ("GET", target, None, headers)
        for target in ("/api/v1/namespaces", "/api/v1/namespaces/default", "/api/v1/namespaces/nope")
        for headers in ({}, {"Accept": TABLE}, {"Accept": METADATA}, {"Accept": "text/html"}, BROWSER, ZIPPED)
    ),
    ("GET", "/api/v1/namespaces?pretty=1", None, {}),
    ("GET", "/api/v1/namespaces?pretty=0", None, BROWSER),
    ("GET", "/apis/apps/v1?pretty=1", None, {}),
    ("GET", "/.well-known/openid-configuration", None, BROWSER),
    ("GET", "/openid/v1/jwks", None, BROWSER),
    ("POST", "/api", None, {}),
    ("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}}, {}),
    ("POST", MAPS, {}, {}),
    ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, {}),
    ("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Dnobody", None, {}),
    ("GET", "/openapi/v2", None, ZIPPED),
    ("GET", "/api/v1/namespaces/nope", None, {"Accept": f"{TABLE},application/json"}),
    ("GET", "/api/v1/namespaces/nope", None, {"Accept": f"{TABLE},application/yaml"}),
    ("HEAD", "/version", None, {}),
]


@pytest.mark.parametrize(("method", "target", "body", "headers"), WRITTEN)
def test_an_answer_is_laid_out_as_kubernetes_does(
    kubernetes: Server, podling: Server, method: str, target: str, body: Any, headers: Any
) -> None:
    theirs, ours = (_layout(server, method, target, body, headers) for server in (kubernetes, podling))
    assert ours == theirs


def _layout(server: Server, method: str, target: str, body: Any, headers: Any) -> tuple[object, ...]:
    """Whether it has several lines, how it ends, and what lets it be asked for again."""
    with server.asking() as asking:
        sent = None if body is None else json.dumps(body)
        asking.connection.request(
            method, target, sent, {"Content-Type": "application/json", "User-Agent": USER_AGENT, **headers}
        )
        said = asking.connection.getresponse()
        text = said.read()
    return (
        said.status,
        said.headers.get_content_type(),
        text.count(b"\n") > 1,
        text[-1:],
        "ETag" in said.headers,
        "Accept" in ", ".join(said.headers.get_all("Vary", ())).split(", "),
    )
