"""R-SYS-8: APIServices are defaulted, validated, changed and shown as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import GONE, changed
from peer.named_differences import unnamed
from peer.sequence import JSON_PATCH, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PATCH = {"Content_Type": MERGE_PATCH}
TRIED = "dryRun=All"
LOCAL = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.local.test"},
    "spec": {"group": "local.test", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10},
}
REMOTE = changed(LOCAL, "spec.service", {"namespace": "nowhere", "name": "nothing"})
CHANGES: list[tuple[str, Any]] = [
    *(("metadata.name", value) for value in ("v2.local.test", "v1.", "local", "a/b", "..", "")),
    ("metadata.labels", {"-": "a"}),
    ("metadata.finalizers", ["x"]),
    *(("spec.group", value) for value in (GONE, "", "A", "-", "other.test")),
    *(("spec.version", value) for value in (GONE, "", "V1", "1", "v2")),
    *(("spec.groupPriorityMinimum", value) for value in (GONE, 0, -1, 1, 20000, 20001)),
    *(("spec.versionPriority", value) for value in (GONE, 0, -1, 1, 1000, 1001)),
    ("spec.caBundle", "QUJD"),
    ("spec.caBundle", "!"),
    ("spec.insecureSkipTLSVerify", True),
    ("spec.unknown", True),
    ("status.conditions", [{"type": "Available", "status": "False"}]),
]
OF_A_SERVICE: list[tuple[str, Any]] = [
    ("spec.service", {}),
    ("spec.service.name", ""),
    ("spec.service.namespace", ""),
    ("spec.service.name", "-"),
    *(("spec.service.port", value) for value in (0, 1, 65535, 65536, -1, None)),
    ("spec.caBundle", "QUJD"),
    ("spec.insecureSkipTLSVerify", True),
]
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("spec.groupPriorityMinimum", 200),
    ("spec.groupPriorityMinimum", 0),
    ("spec.group", "other.test"),
    ("spec.version", "v2"),
    ("spec.insecureSkipTLSVerify", True),
    ("status.conditions", []),
]


def tried(base: dict[str, Any], changes: list[tuple[str, Any]]) -> list[Ask]:
    return [Ask("POST", f"{PATH}?{TRIED}", changed(base, path, value)) for path, value in changes]


def sequences() -> list[Compared]:
    place = f"{PATH}/v1.local.test"
    both = [
        ("spec.caBundle", "QUJD"),
    ]
    insecure = changed(REMOTE, "spec.insecureSkipTLSVerify", True)
    return [
        Compared("tried", tried(LOCAL, CHANGES)),
        Compared("tried with a service", [*tried(REMOTE, OF_A_SERVICE), *tried(insecure, both)]),
        Compared(
            "updated",
            [
                Ask("POST", PATH, LOCAL),
                *(Ask("PATCH", place, changed({}, path, value), PATCH) for path, value in UPDATES),
                Ask("PATCH", f"{place}/status", {"metadata": {"labels": {"c": "d"}}}, PATCH),
                Ask("PATCH", f"{place}/status", {"spec": {"versionPriority": 3}}, PATCH),
                Ask(
                    "PATCH",
                    f"{place}/status",
                    {"status": {"conditions": [{"type": "A", "status": "B"}]}},
                    PATCH,
                ),
                Ask("PUT", place, LOCAL),
                Ask(
                    "PATCH",
                    place,
                    [{"op": "replace", "path": "/spec/versionPriority", "value": 7}],
                    {"Content_Type": JSON_PATCH},
                ),
                Ask("GET", place, headers=TABLE),
                Ask("GET", f"{PATH}?fieldSelector=metadata.name%3Dv1.local.test", headers=TABLE),
                Ask("GET", f"{PATH}?fieldSelector=spec.group%3Dlocal.test"),
                Ask("GET", f"{place}/status"),
                Ask("DELETE", place),
                Ask("GET", place),
            ],
        ),
        Compared(
            "of the server",
            [
                *(
                    Ask("GET", f"{PATH}/{name}", headers=headers)
                    for name in ("v1.", "v1.apps", "v1.batch", "v1.policy", "v1.apiregistration.k8s.io")
                    for headers in ({}, TABLE)
                ),
                Ask("PATCH", f"{PATH}/v1.apps?{TRIED}", {"spec": {"versionPriority": 9}}, PATCH),
                Ask("DELETE", f"{PATH}/v1.apps?{TRIED}"),
            ],
        ),
    ]


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_api_services(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
