"""R-SYS-8: cluster roles that are made of others get the same rules, in the same order and in the name of the
same manager, as from the kube-controller-manager, whatever is written in which order.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from peer import control_plane
from peer.sequence import MERGE_PATCH
from peer.server import Asking, running
from ports import free_port

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
LOOKS = 200
"""At most, a tenth of a second apart."""
SAME_FOR = 3
"""Looks in a row that must find the same on both."""
Rule = Mapping[str, Any]


def rule(*verbs: str, of: str = "things", **more: Any) -> Rule:
    return {"verbs": list(verbs), "apiGroups": ["peer.test"], "resources": [of], **more}


def part(name: str, labels: Mapping[str, str], *rules: Rule) -> dict[str, Any]:
    return {"metadata": {"name": f"agg-{name}", "labels": labels}, "rules": list(rules)}


def whole(name: str, *selectors: Any, labels: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"agg-{name}", "labels": labels or {}},
        **selecting(*selectors),
        **more,
    }


def selecting(*selectors: Any) -> dict[str, Any]:
    return {"aggregationRule": {"clusterRoleSelectors": list(selectors)}}


def labelled(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


class Write(NamedTuple):
    method: str
    name: str
    body: Any = None


def _patch(name: str, body: Any) -> Write:
    return Write("PATCH", name, body)


A, B = labelled(a="1"), labelled(b="1")
ANY_OF = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}
GET, LIST, WATCH = rule("get"), rule("list"), rule("watch")
NAMED = rule("get", resourceNames=["one"])
PATHS = {"verbs": ["get"], "nonResourceURLs": ["/peer"]}
STEPS: Mapping[str, Sequence[Write]] = {
    "before its parts": [Write("POST", "", whole("early", A))],
    "a part joins": [Write("POST", "", part("m", {"a": "1"}, GET, LIST, GET))],
    "one of an earlier name joins": [Write("POST", "", part("c", {"a": "1", "b": "1"}, WATCH, LIST, NAMED))],
    "after its parts": [Write("POST", "", whole("late", B, A)), Write("POST", "", whole("turned", A, B))],
    "by expressions": [Write("POST", "", whole("by-expression", ANY_OF))],
    "of everything labelled so": [Write("POST", "", part("paths", {"a": "2"}, PATHS, rule("*", of="*")))],
    "of another that is made": [Write("POST", "", whole("inner", B, labels={"inner": "1"})),
                                Write("POST", "", whole("outer", labelled(inner="1")))],
    "a label is taken away": [_patch("c", {"metadata": {"labels": {"a": None}}})],
    "a label is put on another": [_patch("m", {"metadata": {"labels": {"b": "1"}}})],
    "the rules of a part change": [_patch("m", {"rules": [WATCH, GET]})],
    "what was gathered is written over": [
        _patch("early", {"rules": [NAMED]}),
        _patch("m", {"rules": [WATCH, GET, rule("delete")]}),
    ],
    "a part is made with rules of its own": [Write("POST", "", whole("own", A, rules=[NAMED]))],
    "the selector changes": [_patch("late", selecting(A))],
    "it is made of others no more": [_patch("turned", {"aggregationRule": None})],
    "it selects itself": [_patch("inner", {"metadata": {"labels": {"b": "1"}}})],
    "it selects nothing": [_patch("by-expression", selecting(labelled(no="1")))],
    "it selects by two": [_patch("own", selecting(B, A))],
    "a part goes": [Write("DELETE", "m")],
    "the last part goes": [Write("DELETE", "c"), Write("DELETE", "paths")],
    "it is made again": [Write("POST", "", part("c", {"a": "1", "b": "1"}, LIST))],
}  # fmt: skip


def write(asking: Asking, one: Write) -> int:
    target = f"{ROLES}/agg-{one.name}" if one.name else ROLES
    kind = MERGE_PATCH if one.method == "PATCH" else "application/json"
    return asking.ask(one.method, target, one.body, Content_Type=kind).code


def found(asking: Asking) -> dict[str, Any]:
    """Of each role its rules, and who manages what."""
    items = asking.ask("GET", ROLES).body["items"]
    return {
        name: [
            one["rules"],
            sorted(
                [entry["manager"], entry["operation"], entry["fieldsV1"]]
                for entry in one["metadata"].get("managedFields", ())
            ),
        ]
        for one in items
        if (name := one["metadata"]["name"]).startswith("agg-")
    }


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sequence[Asking], subprocess.Popen[bytes]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    flags = {
        "controllers": "clusterrole-aggregation-controller",
        "leader-elect": "false",
        "use-service-account-credentials": "false",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": there,
    }
    manager = [
        str(kubernetes_programs / "kube-controller-manager"),
        *(f"--{k}={v}" for k, v in flags.items()),
    ]
    ours = [sys.executable, "-m", "podling", "controllers"]
    with ExitStack() as stack:
        asking = []
        servers = (control_plane.kubernetes(kubernetes_programs, there), control_plane.podling(here))
        for starting, command, directory in zip(servers, (manager, ours), (there, here), strict=True):
            server = stack.enter_context(starting)
            whole_command = [*command, f"--kubeconfig={server.kubeconfig}"]
            controllers = stack.enter_context(running(whole_command, directory / "controllers.log"))
            asking.append(stack.enter_context(server.asking()))
        yield asking, controllers


def test_the_same_rules_are_gathered(
    both: tuple[Sequence[Asking], subprocess.Popen[bytes]],
) -> None:
    asked, controllers = both
    before: dict[str, Any] = {}
    for step, writes in STEPS.items():
        for one in writes:
            codes = [write(asking, one) for asking in asked]
            assert codes[0] == codes[1] < 400, (step, codes)
        same = 0
        for _ in range(LOOKS):
            theirs, ours = (found(asking) for asking in asked)
            same = same + 1 if theirs == ours != before else 0
            if same == SAME_FOR:
                break
            with suppress(subprocess.TimeoutExpired):
                controllers.wait(0.1)
        assert ours == theirs, step
        assert theirs != before, step
        before = theirs
