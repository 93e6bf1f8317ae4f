"""The order of a start and what it must not cost, as far as imports tell."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

START = """
import json, sys
from podling.process.tls import import_aiohttp
import_aiohttp()
import podling.assemble.up, podling.assemble.cluster
modules = sys.modules.items()
ours = {name: module for name, module in modules if name.startswith("podling")}
print(json.dumps({
    "libraries": [
        name.partition(".")[0] for name, module in modules
        if "-packages" in (getattr(module, "__file__", None) or "")
    ],
    "ours": list(ours),
    "dataclasses": [
        f"{one.__module__}.{one.__name__}" for module in ours.values() for one in vars(module).values()
        if isinstance(one, type) and "__dataclass_fields__" in vars(one)
    ],
}))
"""
"""What `podling up` imports, as it does it, and what came with it."""
LIBRARIES = {
    "aiohappyeyeballs",
    "aiohttp",
    "aiosignal",
    "asyncinotify",
    "attr",
    "cryptography",
    "frozenlist",
    "google",
    "idna",
    "jwt",
    "msgspec",
    "multidict",
    "prometheus_client",
    "propcache",
    "sortedcontainers",
    "typing_extensions",
    "uvloop",
    "yaml",
    "yarl",
}
RARE = (
    "podling.apiserver.admission.configuration",
    "podling.apiserver.aggregation.inquiry",
    "podling.apiserver.authn.json_web_tokens",
    "podling.apiserver.authn.token_file",
    "podling.apiserver.authn.token_webhook",
    "podling.apiserver.cel.evaluation",
    "podling.apiserver.cel.policy_types",
    "podling.apiserver.observe.audit_webhook",
    "podling.apiserver.rules.encryption",
    "podling.apiserver.rules.json_path",
    "podling.assemble.encryption",
    "podling.assemble.issuers",
    "podling.assemble.webhooks",
    "podling.client.https",
    "podling.cri.images.push",
    "podling.debug",
    "podling.kubelet.csi.csi_pb2",
    "podling.kubelet.csi.driver",
    "podling.kubelet.csi.node_object",
    "podling.kubelet.csi.registration_pb2",
    "podling.remote",
    "podling.storage.ciphers",
    "podling.storage.kms",
)
MOST_MODULES = 657
"""Of podling itself: each takes 0.3 ms of a start (docs/decisions/066)."""


@pytest.fixture(scope="module")
def started() -> dict[str, list[str]]:
    said = subprocess.run([sys.executable, "-c", START], capture_output=True, check=True).stdout
    return msgspec.json.decode(said, type=dict[str, list[str]])


def test_a_start_imports_the_libraries_it_needs_and_no_others(started: dict[str, list[str]]) -> None:
    """Not nacl: it is for who seals with it."""
    assert {name for name in started["libraries"] if not name.startswith("_")} - {"grpc_tools"} == LIBRARIES


def test_what_is_rare_is_imported_by_who_asks_for_it(started: dict[str, list[str]]) -> None:
    assert not [name for name in started["ours"] if name.startswith(RARE)]
    assert len(started["ours"]) <= MOST_MODULES


def test_containerd_waits_for_no_part_of_podling_to_be_imported() -> None:
    parts = {"aiohttp", "cryptography", "podling.apiserver", "podling.kubelet.kubelet", "podling.scheduler"}
    code = f"import sys, podling.assemble.up; print(sorted({parts!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_start_pays_for_dataclasses(started: dict[str, list[str]]) -> None:
    """A dataclass takes 0.5 to 0.9 ms to make, a msgspec struct 0.02 (docs/decisions/029)."""
    assert not [name for name in started["dataclasses"] if name.startswith("podling.")]
