"""R-SYS-1: kubectl makes and changes objects, each of its ways to do so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from e2e.clients.conftest import Kubectl
    from e2e.conftest import Podling

pytestmark = [pytest.mark.containerd, pytest.mark.interop("kubectl", "API server")]

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n"
CHANGED = CONFIG.replace("{k: v}", "{l: w}")
TEMPLATE = """\
apiVersion: v1
kind: PodTemplate
metadata: {name: t}
template:
  metadata: {labels: {app: t}}
  spec:
    containers:
    - {name: a, image: "x:1", env: [{name: OLD, value: "1"}]}
    - {name: b, image: "y:1"}
"""

GENERATED = [
    ("clusterrole NAME --verb=get,list --resource=pods,pods/log", "clusterrole", ".rules[*].resources"),
    ("clusterrole NAME --verb=get --non-resource-url=/healthz", "clusterrole", ".rules[*].nonResourceURLs"),
    ("clusterrole NAME --aggregation-rule=a=b", "clusterrole", ".aggregationRule"),
    ("clusterrolebinding NAME --clusterrole=view --user=ann --group=g", "clusterrolebinding", ".subjects"),
    ("configmap NAME --from-literal=a=b --from-file=f=FILE", "configmap", ".data.f"),
    ("configmap NAME --from-env-file=FILE", "configmap", ".data.KEY"),
    (
        "cronjob NAME --image=podling.test/busybox:1 --schedule='0 0 1 1 *' -- true",
        "cronjob",
        ".spec.jobTemplate.spec.template.spec.containers[*].command",
    ),
    ("deployment NAME --image=podling.test/busybox:1 --replicas=0", "deployment", ".spec.selector"),
    (
        "job NAME --image=podling.test/busybox:1 -- true",
        "job",
        ".spec.template.spec.containers[*].command",
    ),
    ("namespace NAME", "namespace", ".status.phase"),
    ("poddisruptionbudget NAME --min-available=1 --selector=a=b", "pdb", ".spec.minAvailable"),
    ("poddisruptionbudget NAME --max-unavailable=30% --selector=a=b", "pdb", ".spec.maxUnavailable"),
    ("priorityclass NAME --value=7 --description=x", "priorityclass", ".value"),
    ("quota NAME --hard=pods=2 --scopes=BestEffort", "quota", ".spec.scopes"),
    ("role NAME --verb=get --resource=pods --resource-name=a", "role", ".rules[*].resourceNames"),
    ("rolebinding NAME --role=r --serviceaccount=default:default", "rolebinding", ".subjects"),
    ("secret generic NAME --from-literal=a=b --type=example.com/x", "secret", ".type"),
    (
        "secret docker-registry NAME --docker-server=r --docker-username=u --docker-password=p",
        "secret",
        r".data.\.dockerconfigjson",
    ),
    ("service clusterip NAME --tcp=80:8080", "service", ".spec.clusterIP"),
    ("service clusterip NAME --clusterip=None", "service", ".spec.clusterIP"),
    ("service nodeport NAME --tcp=80", "service", ".spec.ports[*].nodePort"),
    ("service loadbalancer NAME --tcp=80", "service", ".spec.ports[*].nodePort"),
    ("service externalname NAME --external-name=a.example", "service", ".spec.externalName"),
    ("serviceaccount NAME", "serviceaccount", ".metadata.uid"),
]


@pytest.fixture
def editor(tmp_path: Path) -> Callable[[str, str], str]:
    """Programs that write one text for another, in place of a person."""

    def editor(old: str, new: str) -> str:
        program = tmp_path / "editor"
        program.write_text(f"#!/bin/sh\nexec sed -i 's/{old}/{new}/' $1\n")
        program.chmod(0o755)
        return str(program)

    return editor


@pytest.mark.parametrize(("command", "kind", "field"), GENERATED, ids=lambda value: value[:44])
def test_generators(
    kubectl: Kubectl, space: str, tmp_path: Path, command: str, kind: str, field: str
) -> None:
    """`kubectl create KIND`, sent as protobuf."""
    file = tmp_path / "file"
    file.write_text("KEY=value\n")
    name = f"{space}-x"
    command = f"create {command.replace('NAME', name).replace('FILE', str(file))}"
    kubectl.says(command, f"{name} created")
    assert kubectl(f"get {kind} {name} -o jsonpath='{{{field}}}'")
    kubectl.says(f"describe {kind} {name}", rf"Name: +{name}\n")
    kubectl.says(f"delete {kind} {name} --wait=false", f'"{name}" deleted')


def test_a_secret_of_tls(kubectl: Kubectl, podling: Podling) -> None:
    pki = podling.instance.data_dir / "pki"
    pair = f"--cert={pki / 'admin.crt'} --key={pki / 'admin.key'}"
    kubectl.says(f"create secret tls s {pair}", "secret/s created")
    kubectl.says("describe secret s", r"Type: +kubernetes.io/tls\n")


def test_a_name_that_is_taken(kubectl: Kubectl) -> None:
    kubectl.says("create cm c --dry-run=client -o yaml", "name: c\n")
    kubectl.says("create cm c --dry-run=server", r"configmap/c created \(server dry run\)")
    kubectl("create cm c")
    kubectl.refuses("create cm c", 'configmaps "c" already exists')


def test_apply(kubectl: Kubectl, editor: Callable[[str, str], str]) -> None:
    kubectl.says("apply -f -", "configmap/c created", CONFIG)
    kubectl.says("apply -f -", "configmap/c unchanged", CONFIG)
    differs = kubectl.run("diff -f -", CHANGED)
    assert differs.code == 1 and "-  k: v\n" in differs.out and "+  l: w\n" in differs.out
    assert kubectl.run("diff -f -", CONFIG).code == 0
    kubectl.says("apply -f - --dry-run=server", r"configmap/c configured \(server dry run\)", CHANGED)
    kubectl.says("apply -f - --dry-run=client", r"configmap/c configured \(dry run\)", CHANGED)
    kubectl.says("apply -f -", "configmap/c configured", CHANGED)
    assert json.loads(kubectl("get cm c -o json"))["data"] == {"l": "w"}
    kubectl.says("apply view-last-applied cm c", "l: w")
    kubectl.says("apply set-last-applied -f - --create-annotation", "configmap/c configured", CHANGED)
    kubectl.says("apply edit-last-applied cm c", "configmap/c edited", KUBE_EDITOR="sed -i s/l..w/l:.edited/")
    kubectl.says("delete -f -", 'configmap "c" deleted', CONFIG)


def test_apply_prunes_what_is_left_out(kubectl: Kubectl, space: str) -> None:
    both = CONFIG + "---\n" + CONFIG.replace("name: c", "name: d")
    allowed = "--prune -l set=s --prune-allowlist=core/v1/ConfigMap"
    labelled = both.replace("{name: c}", "{name: c, labels: {set: s}}").replace(
        "{name: d}", "{name: d, labels: {set: s}}"
    )
    kubectl(f"apply {allowed} -f -", labelled)
    kubectl.says(f"apply {allowed} -f -", "configmap/d pruned", labelled.partition("---\n")[0])
    assert kubectl("get cm -l set=s -o name") == "configmap/c\n"


def test_apply_on_the_server(kubectl: Kubectl) -> None:
    kubectl.says("apply --server-side -f -", "configmap/c serverside-applied", CONFIG)
    differs = kubectl.run("diff --server-side -f -", CHANGED)
    assert differs.code == 1 and "+  l: w\n" in differs.out
    kubectl.says("apply --server-side -f - --dry-run=server", "server dry run", CHANGED)
    kubectl.refuses("apply --server-side --field-manager=x -f -", "conflict with .kubectl.: .data.k", CONFIG
                    .replace("k: v", "k: x"))  # fmt: skip
    kubectl("apply --server-side --field-manager=x --force-conflicts -f -", CONFIG.replace("k: v", "k: x"))
    managers = kubectl("get cm c -o jsonpath={.metadata.managedFields[*].manager} --show-managed-fields")
    assert managers.split() == ["x"]


def test_apply_of_a_kustomization(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "kustomization.yaml").write_text("namePrefix: my-\nresources: [config.yaml]\n")
    kubectl.says(f"apply -k {tmp_path}", "configmap/my-c created")
    kubectl.says(f"get -k {tmp_path}", "my-c")
    kubectl.says(f"delete -k {tmp_path}", "deleted")


def test_replace(kubectl: Kubectl) -> None:
    kubectl("create -f - --save-config", CONFIG)
    kubectl.says("replace -f -", "configmap/c replaced", CHANGED)
    uid = kubectl("get cm c -o jsonpath={.metadata.uid}")
    kubectl.says("replace --force -f -", 'configmap "c" deleted.*\nconfigmap/c replaced', CHANGED)
    assert kubectl("get cm c -o jsonpath={.metadata.uid}") != uid
    stale = kubectl("get cm c -o yaml")
    kubectl("annotate cm c a=b")
    kubectl.refuses("replace -f -", "the object has been modified", stale)
    kubectl.refuses("replace -f -", "NotFound", CONFIG.replace("name: c", "name: none"))


PATCHES = [
    ("merge", '{"data": {"m": "1", "k": null}}', {"m": "1"}),
    ("strategic", '{"data": {"s": "1"}}', {"k": "v", "s": "1"}),
    ("json", '[{"op": "move", "from": "/data/k", "path": "/data/j"}]', {"j": "v"}),
]


@pytest.mark.parametrize(("type_", "patch", "data"), PATCHES, ids=[patch[0] for patch in PATCHES])
def test_patch(kubectl: Kubectl, tmp_path: Path, type_: str, patch: str, data: dict[str, str]) -> None:
    file = tmp_path / "patch"
    file.write_text(patch)
    kubectl("create -f -", CONFIG)
    kubectl.says(f"patch cm c --type={type_} --patch-file={file} --dry-run=server -o json", '"v1"')
    assert kubectl("get cm c -o jsonpath={.data}") == '{"k":"v"}'
    kubectl.says(f"patch cm c --type={type_} -p '{patch}'", "configmap/c patched")
    assert json.loads(kubectl("get cm c -o json"))["data"] == data
    kubectl.says(f"patch cm c --type=merge -p '{{\"data\": {json.dumps(data)}}}'", r"patched \(no change\)")
    kubectl.refuses(f"patch cm none --type={type_} -p '{patch}'", "NotFound")


def test_patch_of_a_subresource(kubectl: Kubectl, space: str) -> None:
    kubectl("run p --image=podling.test/busybox:1 --command -- sleep 1000")
    condition = '{"status": {"conditions": [{"type": "example.com/Blessed", "status": "True"}]}}'
    kubectl.says(f"patch pod p --subresource=status --type=strategic -p '{condition}'", "pod/p patched")
    assert "example.com/Blessed" in kubectl("get pod p --subresource=status -o json")
    kubectl.says("wait --for=condition=example.com/Blessed pod/p --timeout=30s", "condition met")
    kubectl("delete pod p --force --grace-period=0")


def test_labels_and_annotations(kubectl: Kubectl) -> None:
    kubectl("create -f -", CONFIG)
    kubectl.says("label cm c a=1 b=2", "configmap/c labeled")
    kubectl.refuses("label cm c a=2", "already has a value")
    kubectl.says("label cm c a=2 --overwrite", "configmap/c labeled")
    kubectl.says("label cm c b-", "configmap/c unlabeled")
    kubectl.says("label cm c --list", "a=2")
    kubectl.says("label cm all=yes -l a=2", "configmap/c labeled")
    kubectl.says("annotate cm c note='x y'", "configmap/c annotated")
    kubectl.refuses("label cm c a=-bad-", "a valid label must be an empty string or consist of")
    meta = json.loads(kubectl("get cm c -o json"))["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"a": "2", "all": "yes"}, {"note": "x y"})


def test_edit(kubectl: Kubectl, editor: Callable[[str, str], str]) -> None:
    kubectl("create -f -", CONFIG)
    kubectl.says("edit cm c", "configmap/c edited", KUBE_EDITOR=editor("k: v", "k: edited"))
    kubectl.says("edit cm c", "no changes made", KUBE_EDITOR="true")
    assert kubectl("get cm c -o jsonpath={.data.k}") == "edited"
    node = kubectl("get nodes -o name").strip()
    kubectl.says(f"edit {node} --subresource=status", "cancelled", KUBE_EDITOR="true")


def test_set(kubectl: Kubectl) -> None:
    kubectl("create -f -", TEMPLATE)
    kubectl.refuses("set image pod/none a=x:2", "NotFound")
    kubectl("run p --image=x:1 --restart=Never")
    kubectl.says("set image pod/p p=x:2", "pod/p image updated")
    assert kubectl("get pod p -o jsonpath={.spec.containers[0].image}") == "x:2"
    kubectl.refuses("set env pod/p A=b", "pod updates may not change fields other than")
    kubectl.refuses("set resources pod/p --limits=cpu=1", "pod updates may not change fields other than")
    kubectl.refuses("set serviceaccount pod/p robot", "pod updates may not change fields other than")
    kubectl("create service clusterip s --tcp=80")
    kubectl.says("set selector service s a=b", "service/s selector updated")
    assert kubectl("get svc s -o jsonpath={.spec.selector}") == '{"a":"b"}'
    kubectl("create rolebinding b --role=r --user=ann")
    kubectl.says("set subject rolebinding b --user=bob", "subjects updated")
    assert kubectl("get rolebinding b -o jsonpath={.subjects[*].name}") == "ann bob"
    kubectl("delete pod p --force --grace-period=0")


def test_deletion(kubectl: Kubectl) -> None:
    named = "---\n".join(CONFIG.replace("{name: c}", f"{{name: {n}, labels: {{is: {n}}}}}") for n in "abcdef")
    kubectl("create -f -", named)
    kubectl.says("delete cm a --dry-run=server", "server dry run")
    kubectl.says("delete cm a --now", 'configmap "a" deleted')
    kubectl.says("delete cm -l 'is in (b,c)'", '"b" deleted[^$]*"c" deleted')
    kubectl.says("delete cm/d cm/none --ignore-not-found", '"d" deleted')
    kubectl.refuses("delete cm none", "NotFound")
    kubectl.says("delete cm e --cascade=orphan -o name", "configmap/e")
    kubectl.says("delete cm --cascade=foreground --field-selector=metadata.name=f", '"f" deleted')


def test_validation(kubectl: Kubectl) -> None:
    wrong = CONFIG.replace("\ndata:", "\ndatum:")
    kubectl.refuses("create -f - --validate=strict", 'strict decoding error: unknown field "datum"', wrong)
    kubectl.says("create -f - --validate=warn", 'Warning: unknown field "datum"', wrong)
    kubectl.says("apply -f - --validate=ignore", "configured", wrong)
