"""R-SYS-1: kubectl reads: every output, selector and watch of `get`, `describe` of each kind, `explain`, and
what the server says of itself.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.clients.conftest import Kubectl

pytestmark = [pytest.mark.containerd, pytest.mark.interop("kubectl", "API server")]

SECRET = """\
apiVersion: v1
kind: Secret
metadata: {{name: {0}, labels: {{tier: {1}}}}}
stringData: {{k: {0}}}
"""
SECRETS = "---\n".join(SECRET.format(*one) for one in (("a", "front"), ("b", "front"), ("c", "back")))


@pytest.fixture
def secrets(kubectl: Kubectl) -> Kubectl:
    """A kubectl in a namespace with secrets a, b and c."""
    kubectl("create -f -", SECRETS)
    return kubectl


OUTPUTS = [
    ("", r"NAME +TYPE +DATA +AGE\na +Opaque +1 +\d+s\nb "),
    ("--no-headers", r"\Aa +Opaque +1 +\d+s\n"),
    ("--show-labels", r"a +Opaque +1 +\d+s +tier=front\n"),
    ("-L tier", r"NAME .* TIER\n.*front\n"),
    ("-o wide", r"NAME +TYPE +DATA +AGE\n"),
    ("-o name", r"\Asecret/a\nsecret/b\nsecret/c\n\Z"),
    ("-o json", r'"kind": "List"'),
    ("-o yaml", r"(?s)apiVersion: v1\nitems:\n- apiVersion: v1\n.*kind: Secret\n"),
    ("-o jsonpath='{.items[*].metadata.name}'", r"\Aa b c\Z"),
    ("-o jsonpath='{range .items[?(@.metadata.labels.tier==\"back\")]}{.metadata.name}{end}'", r"\Ac\Z"),
    ("-o go-template='{{range .items}}{{.metadata.name}}{{end}}'", r"\Aabc\Z"),
    ("-o custom-columns=N:.metadata.name,T:.type", r"\AN +T\na +Opaque\n"),
    ("--sort-by='{.data.k}' -o name", r"\Asecret/a\nsecret/b\nsecret/c\n"),
    ("--sort-by=.metadata.creationTimestamp", r"NAME +TYPE"),
    ("--chunk-size=1 -o name", r"\Asecret/a\nsecret/b\nsecret/c\n\Z"),
    ("-l tier=front -o name", r"\Asecret/a\nsecret/b\n\Z"),
    ("-l 'tier notin (front)' -o name", r"\Asecret/c\n\Z"),
    ("--field-selector=metadata.name!=a,type=Opaque -o name", r"\Asecret/b\nsecret/c\n\Z"),
    ("-A --field-selector=metadata.name=a", r"NAMESPACE +NAME +TYPE"),
    ("a c -o name", r"\Asecret/a\nsecret/c\n\Z"),
    ("none --ignore-not-found", r"\A\Z"),
    ("--server-print=false", r"NAME +AGE\na "),
    ("-o json --show-managed-fields", '"managedFields"'),
]


def test_outputs(secrets: Kubectl) -> None:
    for options, wanted in OUTPUTS:
        secrets.says(f"get secrets {options}", wanted)


def test_several_kinds_at_once(secrets: Kubectl) -> None:
    secrets.says("get secret/a sa/default", r"(?s)NAME +TYPE.*secret/a .*serviceaccount/default ")
    secrets.says("get secrets,sa -o name", "(?s)secret/a\n.*serviceaccount/default\n")
    secrets("create service clusterip web --tcp=80")
    secrets.says("get all", r"service/web +ClusterIP")
    secrets.says("get -f - -o name", "secret/a\nsecret/b\nsecret/c\n", SECRETS)


def test_raw(secrets: Kubectl, space: str) -> None:
    listed = json.loads(secrets(f"get --raw /api/v1/namespaces/{space}/secrets?limit=1"))
    assert (listed["kind"], len(listed["items"])) == ("SecretList", 1) and listed["metadata"]["continue"]
    secrets.says(f"get --raw /api/v1/namespaces/{space}?pretty=true", '\\A{\n  "kind": "Namespace",\n')
    secrets.says("get --raw /healthz", r"\Aok")
    secrets.says("get --raw /version", '"gitVersion"')
    secrets.says("get --raw /openapi/v3", "api/v1")
    body = json.dumps({"metadata": {"name": "raw"}})
    secrets.says(f"create --raw /api/v1/namespaces/{space}/configmaps -f -", '"kind":"ConfigMap"', body)
    secrets.says(f"delete --raw /api/v1/namespaces/{space}/configmaps/raw", '"status":"Success"')


@pytest.fixture
def watching(secrets: Kubectl) -> Iterator[Callable[[str], IO[str]]]:
    """Runs `get` with `--watch` and closes it at the end."""
    started: list[subprocess.Popen[str]] = []

    def watching(command: str) -> IO[str]:
        started.append(secrets.start(f"{command} --watch"))
        said = started[-1].stdout
        assert said
        return said

    yield watching
    for process in started:
        process.kill()
        process.communicate()


def test_watches(secrets: Kubectl, watching: Callable[[str], IO[str]]) -> None:
    plain = watching("get secrets")
    told = watching("get secrets --output-watch-events")
    one = watching("get secret c -o jsonpath='{.metadata.labels.tier}{\"\\n\"}'")
    assert plain.readline().split() == ["NAME", "TYPE", "DATA", "AGE"]
    assert [plain.readline().split()[0] for _ in range(3)] == ["a", "b", "c"]
    assert [told.readline().split()[:2] for _ in range(3)] == [
        ["EVENT", "NAME"],
        ["ADDED", "a"],
        ["ADDED", "b"],
    ]
    assert one.readline() == "back\n"
    secrets("label secret c tier=side --overwrite")
    assert one.readline() == "side\n"
    assert plain.readline().split()[0] == "c"
    secrets("delete secret c")
    assert one.readline() == "side\n"


def test_waits(secrets: Kubectl) -> None:
    labelled = secrets.start("wait secret/a --for=jsonpath='{.metadata.labels.done}'=yes --timeout=30s")
    present = secrets.start("wait secret/a --for=jsonpath='{.metadata.labels.done}' --timeout=30s")
    gone = secrets.start("wait secret/b --for=delete --timeout=30s")
    made = secrets.start("wait secret/later --for=create --timeout=30s")
    secrets("label secret a done=yes")
    secrets("delete secret b")
    secrets("create secret generic later")
    for process in (labelled, present, gone, made):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
    secrets.refuses("wait secret/a --for=jsonpath='{.type}'=x --timeout=0s", "condition not met")


KINDS = [
    ("configmap/c", "configmap c --from-literal=a=b", "Data\n====\na:\n----\nb"),
    ("limitrange/l", "-f -", "Container +cpu "),
    ("quota/q", "quota q --hard=secrets=10", "secrets +[0-9]+ +10"),
    ("secret/s", "secret generic s --from-literal=a=b", "a: +1 bytes"),
    ("serviceaccount/default", "", "Image pull secrets: +<none>"),
    ("service/w", "service clusterip w --tcp=80:8080", "Port: +80-8080 +80/TCP"),
    ("pdb/p", "pdb p --min-available=1 --selector=a=b", "Min available: +1"),
    ("role/r", "role r --verb=get --resource=pods", r"pods +\[\] +\[\] +\[get\]"),
    ("rolebinding/b", "rolebinding b --role=r --user=ann", "User +ann"),
    ("podtemplate/t", "-f -", "Image: +x"),
    ("lease/e", "-f -", "Holder Identity: +me"),
    ("endpointslice/o", "-f -", "AddressType: +IPv4"),
    ("endpoints/n", "-f -", "Addresses: +10.0.0.9"),
]
WRITTEN: dict[str, dict[str, Any]] = {
    "limitrange/l": {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"cpu": "9"}}]}},
    "podtemplate/t": {
        "kind": "PodTemplate",
        "template": {"spec": {"containers": [{"name": "a", "image": "x"}]}},
    },
    "lease/e": {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"holderIdentity": "me"}},
    "endpointslice/o": {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.9"]}],
    },
    "endpoints/n": {
        "kind": "Endpoints",
        "subsets": [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 80}]}],
    },
}


@pytest.mark.parametrize(("what", "made", "wanted"), KINDS, ids=[what for what, _, _ in KINDS])
def test_describe(kubectl: Kubectl, what: str, made: str, wanted: str) -> None:
    body = {"apiVersion": "v1", **WRITTEN.get(what, {}), "metadata": {"name": what.partition("/")[2]}}
    if made:
        kubectl(f"create {made}", json.dumps(body))
    kubectl.says(f"describe {what}", wanted)


def test_describe_what_the_cluster_has(kubectl: Kubectl, space: str) -> None:
    node = kubectl("get nodes -o name").strip()
    described = kubectl(f"describe {node}")
    for section in ("Roles:", "Conditions:", "Capacity:", "System Info:", "Allocated resources:", "Lease:"):
        assert section in described
    kubectl.says(f"describe namespace {space}", "Status: +Active")
    kubectl.says("describe priorityclass system-node-critical", "Value: +2000001000")
    kubectl.says("describe service kubernetes -n default", r"IP: +10\.\d+\.0\.1")


FIELDS = [
    ("pod", "KIND: +Pod"),
    ("pods.spec.containers", "FIELD: containers <\\[\\]Container>"),
    ("pods.spec.containers.livenessProbe.httpGet.path", "FIELD: path <string>"),
    ("pods.spec.restartPolicy", "(?s)ENUM:.*Always"),
    ("node.status.conditions.type", "FIELD: type <string>"),
    ("lease.spec.renewTime", "GROUP: +coordination.k8s.io"),
    ("pdb.spec.minAvailable", "FIELD: minAvailable <IntOrString>"),
    ("roles.rules.verbs", "FIELD: verbs <\\[\\]string>"),
    ("endpointslices.endpoints.conditions.ready", "FIELD: ready <boolean>"),
    ("secrets.data", "FIELD: data <map\\[string\\]string>"),
    ("services.spec.ports.targetPort", "FIELD: targetPort <IntOrString>"),
    ("events.involvedObject", "FIELD: involvedObject <ObjectReference>"),
    ("events --api-version=events.k8s.io/v1", "regarding\t<ObjectReference>"),
    ("pod --recursive", "ephemeralContainers"),
    ("pods.spec --output=plaintext-openapiv2", "KIND: +Pod"),
]


def test_explain(kubectl: Kubectl) -> None:
    for what, wanted in FIELDS:
        kubectl.says(f"explain {what}", wanted)
    kubectl.refuses("explain pods.spec.novel", 'field "novel" does not exist')
    kubectl.refuses("explain novels", "the server doesn't have a resource type")


def test_what_the_server_serves(kubectl: Kubectl) -> None:
    kubectl.says("version", r"Server Version: v1\.36")
    kubectl.says("api-resources", r"pods +po +v1 +true +Pod\n")
    kubectl.says("api-resources --namespaced=false -o name", "(?m)^nodes$")
    kubectl.says(
        "api-resources --api-group=policy -o wide", r"pdb +policy/v1 .*create,delete,deletecollection"
    )
    kubectl.says("api-resources --verbs=list,watch --categories=all -o name", r"\A(?s:.*)services\n")
    kubectl.says("api-versions", "(?m)^rbac.authorization.k8s.io/v1$")
    kubectl.says("cluster-info", "control plane.*is running at")
    kubectl.says("auth can-i create pods --subresource=exec", "yes")
    kubectl.says("auth can-i --list", r"\*\.\* +\[\]")
    kubectl.says("auth whoami", "kubernetes-admin")
    kubectl.says(
        "auth whoami --as=bob --as-group=g --as-uid=u", r"(?s)Username +bob\nUID +u\nGroups +\[g system:auth"
    )
    account = "system:serviceaccount:default:default"
    kubectl.says(
        f"auth whoami --as={account}", r"Groups +\[system:serviceaccounts system:serviceaccounts:default "
    )
    kubectl.refuses(f"auth can-i create pods --as={account}", "")
    kubectl.refuses(f"get pods --as={account}", f'User "{account}" cannot list resource "pods"')
    kubectl.refuses(
        "get pods --as-group=g", "requesting uid, groups or user-extra .* without impersonating a user"
    )


def test_auth_reconciles_roles(kubectl: Kubectl, space: str) -> None:
    role = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
        f"metadata: {{name: r, namespace: {space}}}\nrules:\n"
    )
    get = "- {apiGroups: [''], resources: [pods], verbs: [get]}\n"
    kubectl.says("auth reconcile -f -", "r reconciled", role + get)
    kubectl.says(
        "auth reconcile -f -", "(?s)r reconciled.*(missing|added).*list", role + get.replace("get", "list")
    )
    assert sorted(kubectl("get role r -o jsonpath={.rules[*].verbs[*]}").split()) == ["get", "list"]


def test_refusals(kubectl: Kubectl) -> None:
    for command, wanted in (
        ("get novels", 'the server doesn\'t have a resource type "novels"'),
        ("get pod nowhere", r'Error from server \(NotFound\): pods "nowhere" not found'),
        ("get --raw /api/v1/novels", "the server could not find the requested resource"),
        ("get pods -l a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("get pods --field-selector spec.x=y", "field label not supported: spec.x"),
        ("delete namespace kube-system", "this namespace may not be deleted"),
        ("create cm Bad_Name", "a lowercase RFC 1123 subdomain must consist of"),
        ("create cm c -n nowhere", 'namespaces "nowhere" not found'),
    ):
        kubectl.refuses(command, wanted)
