"""R-SYS-1: real kubectl, over TLS, against the API server alone: no kubelet, no runtime, no root."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podling import __version__
from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.server import listening, tls_context
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import Response
from podling.client import kubeconfig
from podling.machine.pki import Authority
from podling.model.time import SystemClock
from podling.storage.memory import MemoryStorage

KUBECTL = shutil.which("kubectl") or str(Path(sys.executable).parent / "kubectl")
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  initContainers:
  - {name: first, image: busybox, command: [sh, -c, "true"]}
  containers:
  - {name: app, image: "nginx:1"}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n"


@dataclass
class Ran:
    code: int
    out: str
    err: str


@dataclass
class Kubectl:
    """Runs kubectl while the server answers in the same event loop."""

    kubeconfig: Path

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            KUBECTL,
            "--kubeconfig",
            str(self.kubeconfig),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": str(self.kubeconfig.parent)},
        )

    async def run(self, command: str, stdin: str = "") -> Ran:
        process = await self.start(*command.split())
        out, err = await process.communicate(stdin.encode())
        return Ran(process.returncode or 0, out.decode(), err.decode())

    async def __call__(self, command: str, stdin: str = "") -> str:
        """The output of a command that must succeed."""
        ran = await self.run(command, stdin)
        assert ran.code == 0, f"kubectl {command}\n{ran.out}{ran.err}"
        return ran.out

    async def refused(self, command: str, stdin: str = "") -> str:
        ran = await self.run(command, stdin)
        assert ran.code != 0, f"kubectl {command} succeeded\n{ran.out}"
        return ran.err


async def no_node(context: RequestContext, obj: Any) -> Response:
    return Response(200, f"{context.info.subresource}\n".encode(), "text/plain")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"), datetime.now(UTC))


@pytest.fixture
async def kubectl(tmp_path: Path, authority: Authority) -> AsyncIterator[Kubectl]:
    server = ApiServer.build(
        MemoryStorage(),
        KINDS,
        clock=SystemClock(),
        connector=no_node,
        paths=(Discovery(KINDS, __version__), OpenAPI(KINDS, __version__)),
    )
    await server.start()
    await furnish(server)
    pair = authority.server("apiserver", "kubernetes", ["127.0.0.1"])
    admin = authority.client("admin", "admin", ["system:masters"])
    tls = tls_context(pair.certificate, pair.key, authority.ca.certificate)
    async with listening(server.handle, "127.0.0.1", 0, tls, end_streams=server.close) as port:
        kubeconfig.write(
            tmp_path / "config",
            "test",
            f"https://127.0.0.1:{port}",
            certificate_authority=authority.ca.certificate.read_bytes(),
            client_certificate=admin.certificate.read_bytes(),
            client_key=admin.key.read_bytes(),
        )
        yield Kubectl(tmp_path / "config")


async def furnish(server: ApiServer) -> None:
    """What the controllers would have made: the default namespace and its service account."""
    root = User("root", ("system:masters",))
    for path, name in (("namespaces", "default"), ("namespaces/default/serviceaccounts", "default")):
        body = json.dumps({"metadata": {"name": name}}).encode()
        response = await server.handle(Request("POST", f"/api/v1/{path}", body=body, user=root))
        assert response.status == 201


async def test_the_life_of_a_pod_object(kubectl: Kubectl) -> None:
    assert await kubectl("create -f -", POD) == "pod/web created\n"
    header, row = (await kubectl("get pods")).splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["web", "0/1", "Pending", "0"]
    wide = (await kubectl("get pods -o wide")).splitlines()[0].split()
    assert wide[5:7] == ["IP", "NODE"] and "NOMINATED" in wide and "READINESS" in wide
    assert await kubectl("label pod web tier=front") == "pod/web labeled\n"
    assert await kubectl("annotate pod web note=x") == "pod/web annotated\n"
    assert "web" in await kubectl("get pods -l app=web,tier=front -A")
    assert (await kubectl("delete pod web")).startswith('pod "web" deleted')
    assert "No resources found" in (await kubectl.run("get pods")).err


async def test_output_formats(kubectl: Kubectl) -> None:
    await kubectl("create -f -", POD)
    assert json.loads(await kubectl("get pod web -o json"))["kind"] == "Pod"
    assert (await kubectl("get pod web -o yaml")).startswith("apiVersion: v1\nkind: Pod\n")
    listed = json.loads(await kubectl("get pods -o json"))
    assert listed["kind"] == "List" and listed["items"][0]["kind"] == "Pod"
    assert await kubectl("get pods -o name") == "pod/web\n"
    assert await kubectl("get pod web -o jsonpath={.spec.containers[0].image}") == "nginx:1"
    columns = await kubectl("get pods -o custom-columns=N:.metadata.name,P:.status.phase")
    assert columns.split() == ["N", "P", "web", "Pending"]
    assert (await kubectl("get pods --sort-by=.metadata.name")).splitlines()[1].startswith("web")


async def test_describe(kubectl: Kubectl) -> None:
    await kubectl("create -f -", POD)
    described = await kubectl("describe pod web")
    assert "Init Containers:\n  first:\n" in described and "Containers:\n  app:\n" in described
    assert "Service Account:" in described
    assert "Name:" in await kubectl("describe namespace default")


async def test_apply_again_and_again(kubectl: Kubectl) -> None:
    assert await kubectl("apply -f -", CONFIG) == "configmap/c created\n"
    assert await kubectl("apply -f -", CONFIG) == "configmap/c unchanged\n"
    changed = CONFIG.replace("{k: v}", "{l: w}")
    assert "k: v" in (await kubectl.run("diff -f -", changed)).out
    assert await kubectl("apply -f -", changed) == "configmap/c configured\n"
    assert json.loads(await kubectl("get cm c -o json"))["data"] == {"l": "w"}
    assert await kubectl("apply -f -", POD) == "pod/web created\n"
    image = POD.replace("nginx:1", "nginx:2")
    assert await kubectl("apply -f -", image) == "pod/web configured\n"
    assert await kubectl("get pod web -o jsonpath={.spec.containers[0].image}") == "nginx:2"


async def test_replace_patch_and_edit(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    await kubectl("create -f -", CONFIG)
    assert await kubectl("replace -f -", CONFIG.replace("k: v", "k: w")) == "configmap/c replaced\n"
    for kind, body in (
        ("merge", '{"data":{"m":"1"}}'),
        ("strategic", '{"data":{"s":"1"}}'),
        ("json", '[{"op":"add","path":"/data/j","value":"1"}]'),
    ):
        assert await kubectl(f"patch cm c --type={kind} -p {body}") == "configmap/c patched\n"
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/w/edited/")
    assert await kubectl("edit cm c") == "configmap/c edited\n"
    data = json.loads(await kubectl("get cm c -o json"))["data"]
    assert data == {"k": "edited", "m": "1", "s": "1", "j": "1"}


async def test_create_commands(kubectl: Kubectl) -> None:
    await kubectl("create namespace shop")
    await kubectl("create configmap c --from-literal=a=b -n shop")
    await kubectl("create secret generic s --from-literal=a=b -n shop")
    await kubectl("create serviceaccount robot -n shop")
    assert (await kubectl("get secret s -n shop")).split()[-4:-1] == ["s", "Opaque", "1"]
    assert await kubectl("get cm -n shop -o name") == "configmap/c\n"
    assert "shop" in await kubectl("get ns")


async def test_dry_runs(kubectl: Kubectl) -> None:
    assert await kubectl("create -f - --dry-run=server", POD) == "pod/web created (server dry run)\n"
    assert await kubectl("get pods -o name") == ""
    await kubectl("create -f -", POD)
    assert "(server dry run)" in await kubectl("label pod web a=b --dry-run=server")
    assert "(server dry run)" in await kubectl("delete pod web --dry-run=server")
    assert await kubectl("get pods -l a=b -o name") == ""


async def test_watching(kubectl: Kubectl) -> None:
    watching = await kubectl.start("get", "pods", "-w", "--output-watch-events")
    assert watching.stdout is not None
    await kubectl("create -f -", POD)
    assert (await watching.stdout.readline()).split()[:2] == [b"EVENT", b"NAME"]
    assert (await watching.stdout.readline()).split()[:4] == [b"ADDED", b"web", b"0/1", b"Pending"]
    await kubectl("delete pod web")
    assert (await watching.stdout.readline()).split()[:2] == [b"MODIFIED", b"web"]
    assert (await watching.stdout.readline()).split()[:2] == [b"DELETED", b"web"]
    watching.kill()
    await watching.communicate()


async def test_waiting(kubectl: Kubectl) -> None:
    await kubectl("create -f -", POD)
    waiting = await kubectl.start("wait", "--for=delete", "pod/web", "--timeout=30s")
    labelled = await kubectl.start("wait", "--for=jsonpath={.metadata.labels.a}=b", "pod/web")
    await kubectl("label pod web a=b")
    assert await labelled.wait() == 0
    await kubectl("delete pod web")
    assert await waiting.wait() == 0


async def test_a_namespace_stays_until_it_is_finalized(kubectl: Kubectl) -> None:
    await kubectl("create namespace shop")
    await kubectl("delete namespace shop --wait=false")
    assert "Terminating" in await kubectl("get namespace shop")
    refused = await kubectl.refused("create -n shop -f -", CONFIG)
    assert "because it is being terminated" in refused
    body = json.loads(await kubectl("get namespace shop -o json"))
    body["spec"]["finalizers"] = []
    await kubectl("replace --raw /api/v1/namespaces/shop/finalize -f -", json.dumps(body))
    assert "NotFound" in await kubectl.refused("get namespace shop")


async def test_many_objects_in_pages(kubectl: Kubectl) -> None:
    items = [CONFIG.replace("{name: c}", f"{{name: c{n:03}}}") for n in range(30)]
    await kubectl("create -f -", "---\n".join(items))
    assert len((await kubectl("get cm -o name --chunk-size=7")).split()) == 30
    await kubectl("delete cm --all")
    assert await kubectl("get cm -o name") == ""


async def test_discovery_and_openapi(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.0+podling" in await kubectl("version")
    assert "pods" in await kubectl("api-resources --no-headers")
    assert "v1" in (await kubectl("api-versions")).split()
    assert "FIELDS:" in await kubectl("explain pod.spec.containers")
    assert "ok" in await kubectl("get --raw /readyz")


async def test_logs_are_asked_of_the_node(kubectl: Kubectl) -> None:
    await kubectl("create -f -", POD)
    assert await kubectl("logs web") == "log\n"


REFUSALS = [
    ("get novels", "", 'the server doesn\'t have a resource type "novels"'),
    ("get pod nowhere", "", 'Error from server (NotFound): pods "nowhere" not found'),
    ("get --raw /api/v1/novels", "", "the server could not find the requested resource"),
    ("create -f -", "apiVersion: v1\nkind: Novel\nmetadata: {name: x}\n", 'no matches for kind "Novel"'),
    (
        "create -f - --validate=false",
        POD.replace("name: web", "name: Web_"),
        "RFC 1123 subdomain",
    ),
    ("create -f -", POD.replace("image:", "picture:"), 'unknown field "spec.containers[0].picture"'),
    ("create -n nowhere -f -", CONFIG, 'namespaces "nowhere" not found'),
    ("create --raw /api/v1/namespaces/default/pods -f -", "{", "json parse error"),
    ("get pods -l a=b=c", "", "found '=', expected: ',' or 'end of string'"),
    ("get pods --field-selector spec.x=y", "", "field label not supported: spec.x"),
    ("delete namespace default", "", "this namespace may not be deleted"),
    ("patch pod nowhere -p {}", "", 'pods "nowhere" not found'),
]


@pytest.mark.parametrize(("command", "stdin", "message"), REFUSALS, ids=lambda value: str(value)[:40])
async def test_refusals(kubectl: Kubectl, command: str, stdin: str, message: str) -> None:
    assert message in await kubectl.refused(command, stdin)


async def test_a_name_that_is_taken(kubectl: Kubectl) -> None:
    await kubectl("create -f -", CONFIG)
    assert "AlreadyExists" in await kubectl.refused("create -f -", CONFIG)


async def test_a_stale_replacement(kubectl: Kubectl) -> None:
    await kubectl("create -f -", CONFIG)
    stale = await kubectl("get cm c -o yaml")
    await kubectl("label cm c a=b")
    refused = await kubectl.refused("replace -f -", stale)
    assert "the object has been modified" in refused


async def managers(kubectl: Kubectl, what: str) -> set[str]:
    shown = json.loads(await kubectl(f"get {what} -o json --show-managed-fields"))
    return {f"{entry['manager']}/{entry['operation']}" for entry in shown["metadata"]["managedFields"]}


async def test_apply_on_the_server_side(kubectl: Kubectl) -> None:
    assert await kubectl("apply --server-side -f -", CONFIG) == "configmap/c serverside-applied\n"
    changed = CONFIG.replace("{k: v}", "{l: w}")
    diff = (await kubectl.run("diff --server-side -f -", changed)).out
    assert "-  k: v\n" in diff and "+  l: w\n" in diff
    assert await kubectl("apply --server-side -f -", changed) == "configmap/c serverside-applied\n"
    assert json.loads(await kubectl("get cm c -o json"))["data"] == {"l": "w"}
    assert "managedFields" not in await kubectl("get cm c -o yaml")
    assert await managers(kubectl, "cm c") == {"kubectl/Apply"}
    assert await kubectl("apply --server-side -f -", POD) == "pod/web serverside-applied\n"
    image = POD.replace("nginx:1", "nginx:2")
    assert await kubectl("apply --server-side -f -", image) == "pod/web serverside-applied\n"
    assert await kubectl("get pod web -o jsonpath={.spec.containers[0].image}") == "nginx:2"


async def test_conflicts_are_told_and_forced(kubectl: Kubectl) -> None:
    await kubectl("create -f -", CONFIG)
    changed = CONFIG.replace("k: v", "k: w")
    refused = await kubectl.refused("apply --server-side -f -", changed)
    assert 'Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.k' in refused
    await kubectl("apply --server-side --force-conflicts -f -", changed)
    assert await managers(kubectl, "cm c") >= {"kubectl/Apply"}
    other = await kubectl.refused("apply --server-side --field-manager=other -f -", CONFIG)
    assert 'conflict with "kubectl": .data.k' in other


async def test_from_the_clients_side_to_the_servers_and_back(kubectl: Kubectl) -> None:
    await kubectl("apply -f -", CONFIG)
    assert await managers(kubectl, "cm c") == {"kubectl-client-side-apply/Update"}
    changed = CONFIG.replace("{k: v}", "{l: w}")
    assert await kubectl("apply --server-side -f -", changed) == "configmap/c serverside-applied\n"
    assert json.loads(await kubectl("get cm c -o json"))["data"] == {"l": "w"}
    assert await managers(kubectl, "cm c") == {"kubectl/Apply", "kubectl-last-applied/Apply"}
    assert await kubectl("apply -f -", CONFIG) == "configmap/c configured\n"
    assert json.loads(await kubectl("get cm c -o json"))["data"] == {"k": "v"}
