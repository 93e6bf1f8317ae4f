"""Writes docs/interop.md: which of Kubernetes' programs works with which of podling's parts, from the tests.

A test that proves such a pair says so by `@pytest.mark.interop("kubelet", "API server", "scheduler")`: first
the program of Kubernetes (`PROGRAMS`), then the parts of podling it works with (`PARTS`). A file whose tests
all prove the same has the mark as its `pytestmark`. The marks are read, no test is run.

`tests/unit/test_interop.py` holds the document to what this writes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs/interop.md"
RELEASE = "1.36.2"
PROGRAMS = {
    "kube-apiserver": RELEASE,
    "kube-controller-manager": RELEASE,
    "kube-scheduler": RELEASE,
    "kube-proxy": RELEASE,
    "kubelet": RELEASE,
    "kubectl": "1.32 and 1.36",
}
"""Kubernetes' programs as marks name them → the version that the tests run."""
PARTS = ("API server", "scheduler", "controllers", "kubelet")
IN_PLACE_OF = {
    "kube-apiserver": "API server",
    "kube-controller-manager": "controllers",
    "kube-scheduler": "scheduler",
    "kubelet": "kubelet",
}
"""Which part of podling each program stands in for: those two are compared, not combined."""


class Proof(NamedTuple):
    """A marked test, and where it is; `says` is the first paragraph of its docstring."""

    program: str
    parts: tuple[str, ...]
    path: str
    name: str
    says: str


def proofs() -> list[Proof]:
    """All marked tests. Raises ValueError for a mark that names what is not known."""
    found = [proof for path in sorted((ROOT / "tests").rglob("test_*.py")) for proof in _of(path)]
    for proof in found:
        unknown = {proof.program} - PROGRAMS.keys() | set(proof.parts) - set(PARTS)
        if unknown or not proof.parts:
            raise ValueError(f"{proof.path}: {proof.name} is marked for {unknown or 'no part'}")
    return found


def _of(path: Path) -> Iterator[Proof]:
    text = path.read_text()
    if "mark.interop(" not in text:
        return
    tree = ast.parse(text)
    shared = [
        mark
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for mark in _marks(node.value)
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            own = [mark for decorator in node.decorator_list for mark in _marks(decorator)]
            says = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            for program, *parts in shared + own:
                yield Proof(program, tuple(parts), str(path.relative_to(ROOT)), node.name, says)


def _marks(node: ast.expr) -> Iterator[list[str]]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.interop":
            yield [ast.literal_eval(argument) for argument in call.args]


def render() -> str:
    """The document as it should be."""
    found = proofs()
    head = ["Kubernetes'", *(f"podling's {part}" for part in PARTS)]
    rows = [head, ["---"] * len(head)]
    rows += [
        [f"{program} {PROGRAMS[program]}", *(_cell(found, program, part) for part in PARTS)]
        for program in PROGRAMS
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""# What works with what

Written by `scripts/interop.py` from the marks of the tests that prove it. Beside each program of Kubernetes,
in the version that the tests run, stands for each part of podling in how many tests the two work together. A
program and the part it stands in for are compared rather than combined: `tests/peer` asks both API servers
the same. kube-apiserver keeps its objects in etcd 3.5.16.

{table}

The tests run where Kubernetes' programs are at hand (`PODLING_UPSTREAM`) and are skipped with a reason
elsewhere; those of kubectl take the machine's, which was 1.32 when this was written, and the newest of the
package index.
{_sections(found)}"""


def _cell(found: list[Proof], program: str, part: str) -> str:
    if IN_PLACE_OF.get(program) == part:
        return "stands in for it"
    return str(sum(1 for proof in found if proof.program == program and part in proof.parts) or "")


def _sections(found: list[Proof]) -> str:
    lines: list[str] = []
    for program in PROGRAMS:
        mine = [proof for proof in found if proof.program == program]
        if mine:
            lines += ["", f"## {program} {PROGRAMS[program]}"]
        for path in dict.fromkeys(proof.path for proof in mine):
            here = [proof for proof in mine if proof.path == path]
            parts = [part for part in PARTS if any(part in proof.parts for proof in here)]
            lines += ["", f"With podling's {_listed(parts)}, `{path}`:", ""]
            lines += [f"- `{proof.name}`" + (f": {proof.says}" if proof.says else "") for proof in here]
    return "\n".join(lines).rstrip() + "\n"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


if __name__ == "__main__":
    DOCUMENT.write_text(render())
