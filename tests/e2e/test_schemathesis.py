"""R-SYS-1: Schemathesis, which knows podling only by its OpenAPI, finds nothing it cannot answer.

It sends what the descriptions allow, and what they do not, to every path for a bounded time. Only its answers
are judged here: none may be a server's fault, and what succeeds must look as it is described.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from api_types import every_kind, every_type
from podling.apiserver.paths.openapi.schemas import schema_name

if TYPE_CHECKING:
    from e2e.conftest import Plain

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SECONDS = 40
# A watch would keep it waiting; 504 is a revision that is yet to come. A deletion that is held is answered
# with the object, of which Kubernetes' own description of DELETE says nothing either.
CONFIG = """
warnings = false
[parameters]
name = "sample"
namespace = "default"
watch = false
[checks]
enabled = false
[checks.not_a_server_error]
enabled = true
expected-statuses = ["2xx", "4xx", "504"]
[checks.content_type_conformance]
enabled = true
[checks.response_schema_conformance]
enabled = true
[[operations]]
include-method = "DELETE"
[operations.checks.response_schema_conformance]
enabled = false
"""


NULL = frozenset(
    (schema_name(type_), field.encode_name)
    for type_ in every_type(every_kind())
    for field in msgspec.structs.fields(type_)
    if field.default_factory not in (list, msgspec.NODEFAULT) and field.default_factory() in ([], None)
)
"""Lists that are `null` when they are empty, of which Kubernetes' own descriptions say nothing."""
ALWAYS_WRITTEN = frozenset(
    {
        "io.k8s.api.authentication.v1.BoundObjectReference",
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    }
)
"""What Go always writes is `null` when it is unset; of that the descriptions say nothing either."""
ISSUER = ("/.well-known/openid-configuration/", "/openid/v1/jwks/")
"""What Kubernetes describes as a text and answers as an object."""


def described(server: Any) -> dict[str, Any]:
    """All groups in one document."""
    _, index = server.ask("GET", "/openapi/v3")
    documents = [server.ask("GET", entry["serverRelativeURL"])[1] for entry in index["paths"].values()]
    # Below /watch/ everything is a watch, whatever its query says, and most outlast the test.
    paths = {
        path: item
        for document in documents
        for path, item in document["paths"].items()
        if "/watch/" not in path
    }
    # What has no bodies has no schemas either.
    schemas = {
        name: schema
        for document in documents
        for name, schema in document["components"].get("schemas", {}).items()
    }
    for path in ISSUER:
        del paths[path]
    for name in ALWAYS_WRITTEN:
        schemas[name]["nullable"] = True
    for type_name, name in NULL:
        if type_name in schemas:
            schemas[type_name]["properties"][name]["nullable"] = True
    return {**documents[0], "paths": paths, "components": {"schemas": schemas}}


def test_nothing_is_answered_with_an_error_of_the_server(api_server: Plain, tmp_path: Path) -> None:
    document, config = tmp_path / "openapi.json", tmp_path / "schemathesis.toml"
    document.write_text(json.dumps(described(api_server)))
    config.write_text(CONFIG)
    command = [str(SCHEMATHESIS), "--config-file", str(config), "run", str(document)]
    options = [
        "--url",
        api_server.url,
        "--max-time",
        str(SECONDS),
        "--phases",
        "coverage,fuzzing",
        "--no-color",
    ]
    done = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=2 * SECONDS
    )
    assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-200:]) + done.stderr
