"""R-SYS-8: which field a warning of type checking is about: what is no JSONPath is refused alike."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
RULES = [{"operations": ["*"], "apiGroups": ["example.test"], "apiVersions": ["*"], "resources": ["gadgets"]}]
SPEC = {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "true"}]}
PIECES = (
    "a", "b1", "_", ".", "..", "[", "]", "*", "'", '"', "\\", "0", "1", "-", "+", ":", ",", "?(", ")", "[?(",
    "@", " ", "{", "}", "==", "!", "<", "'a'", "[0]", "[1:2]", "[*]", "['k']", "\n", "\t", "#", "é", "٣",
    "true", "99999999999999999999", "\\'", "\\x41", "1.2", ".a[?(@.b==1)]", "[1,2]", "\r", "=", "/", "|",
)  # fmt: skip
REQUESTS, AT_ONCE, LONGEST = 40, 20, 6


def asked() -> Iterator[Ask]:
    yield Ask("POST", POLICIES, {"metadata": {"name": "paths"}, "spec": SPEC})
    by = Random("paths")
    for _ in range(REQUESTS):
        paths = ["".join(by.choices(PIECES, k=by.randint(1, LONGEST))) for _ in range(AT_ONCE)]
        warnings = [{"fieldRef": path, "warning": "w"} for path in paths]
        body = {"status": {"typeChecking": {"expressionWarnings": warnings}}}
        yield Ask("PATCH", f"{POLICIES}/paths/status?dryRun=All", body, {"Content_Type": MERGE_PATCH})
    yield Ask("DELETE", f"{POLICIES}/paths")


def test_what_is_no_json_path_is_refused_alike(kubernetes: Server, podling: Server) -> None:
    sequence = Compared("paths", list(asked()), apart=True)
    found = unnamed(differences(sequence, "json-paths", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
