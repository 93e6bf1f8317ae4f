"""R-SYS-1: what docs/served.md calls served is served, and what it calls refused is refused just so."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from podling.model.scheme import by_kind

if TYPE_CHECKING:
    from e2e.conftest import Plain

SERVED = runpy.run_path(str(Path(__file__).parents[2] / "scripts/served.py"))
CELLS = [cell for kind in SERVED["KINDS"] for cell in SERVED["cells"](kind)] + [
    cell for kind in SERVED["KINDS"] for _, asked in SERVED["subresource_cells"](kind) for cell in asked
]
QUERY = {
    "watch": "watch=1",
    "delete": "dryRun=All",
    "deletecollection": "dryRun=All",
}
OTHERWISE = {
    resource.plural: sample["metadata"]["name"]
    for sample in yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text())
    if (resource := by_kind(sample["apiVersion"], sample["kind"])) and sample["metadata"]["name"] != "sample"
} | {"componentstatuses": "scheduler"}
"""How the samples are called that may not be called `sample`, by resource."""


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.verb} {cell.path}")
def test_verbs(api_server: Plain, cell: Any) -> None:
    kind = {"Content_Type": "application/merge-patch+json"} if cell.verb == "patch" else {}
    body: dict[str, str] | None = {} if cell.method in ("POST", "PUT", "PATCH") else None
    path = cell.path
    for plural, name in OTHERWISE.items():
        path = path.replace(f"/{plural}/sample", f"/{plural}/{name}")
    code, said = api_server.ask(cell.method, f"{path}?{QUERY.get(cell.verb, '')}", body, **kind)
    # A path for which a kind has no verb at all is no page, as in Kubernetes.
    assert (code in (404, SERVED["NOT_ALLOWED"])) != cell.served, said


@pytest.mark.parametrize("refusal", SERVED["REFUSALS"], ids=lambda refusal: refusal["what"])
def test_refusals(api_server: Plain, refusal: dict[str, Any]) -> None:
    body = b" " * refusal["size"] if "size" in refusal else refusal.get("body")
    headers = {
        "Content_Type": refusal.get("type", "application/json"),
        "Accept": refusal.get("accept", "application/json"),
    }
    body = body.encode() if isinstance(body, str) else body
    code, said = api_server.ask(refusal.get("method", "GET"), refusal["target"], body, **headers)
    assert (code, said["reason"]) == (refusal["code"], refusal["reason"]), said
    assert said["kind"] == "Status" and said["code"] == code


@pytest.mark.parametrize("kind", SERVED["KINDS"], ids=lambda kind: kind.resource.qualified)
def test_field_selectors(api_server: Plain, kind: Any) -> None:
    listed = next(cell for cell in SERVED["cells"](kind) if cell.verb == "list")
    if listed.served:
        for field in ("metadata.name", *kind.selectable_fields):
            code, said = api_server.ask("GET", f"{listed.path}?fieldSelector={field}%21%3Dx")
            assert code == 200, said
