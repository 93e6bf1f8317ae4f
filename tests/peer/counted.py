"""How much is compared: what each test sends to Kubernetes' API server and to podling's, counted where it is
sent.

What one test sends is a sequence. It is compared if both servers were sent the same request in it; what only
one of them was asked, or one more often, counts for nothing. `docs/compared.md` has the figures of each file,
and a file fails that compares less than that says (`conftest.py`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parents[2] / "docs/compared.md"
PODLING = "podling"
HEAD = """# What is compared

kube-apiserver 1.36.2 and podling's API server are sent the same, and what they answer is compared field by
field ([decision 037](decisions/037-compared-with-kube-apiserver.md)); what differs on purpose is a
list of at most 30 (`tests/peer/named_differences.py`). What is promised of it, and which test shows it, is in
[Kubernetes beside podling](beside-kubernetes.md). A sequence is what one test sends to both. It is
counted where it is sent (`tests/peer/counted.py`), and a test fails where fewer are compared than is written
here. How many requests that takes varies a little, with what is asked until it is so.
`PODLING_RECORD=1 pytest tests/peer` writes this page.

"""

_sent: dict[tuple[str, str], dict[bool, Counter[tuple[str, str]]]] = {}
"""What was sent by the file and the test, and by whether to podling: methods and paths."""


class Count(NamedTuple):
    sequences: int
    requests: int


NOTHING = Count(0, 0)


def sent(server: str, method: str, target: str, of: str = "") -> None:
    """A request goes out. `of`: the sequence it is a part of, where that is not the test that runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    file, _, name = test.partition("::")
    to = _sent.setdefault((Path(file).name, of or name), {True: Counter(), False: Counter()})
    to[PODLING in server][method, target.partition("?")[0]] += 1


def compared() -> Mapping[str, Count]:
    """By the file."""
    found: dict[str, Count] = {}
    for (file, _), to in _sent.items():
        if both := (to[True] & to[False]).total():
            before = found.get(file, NOTHING)
            found[file] = Count(before.sequences + 1, before.requests + both)
    return found


def record(file: str, count: Count) -> None:
    """In the document."""
    counts = {**documented(), file: count}
    DOCUMENT.write_text(rendered({of: one for of, one in counts.items() if one.sequences}))


def documented() -> Mapping[str, Count]:
    rows = (line.strip("| ").split(" | ") for line in DOCUMENT.read_text().splitlines() if "`test_" in line)
    return {file.strip("`"): Count(*(int(one.replace(",", "")) for one in counts)) for file, *counts in rows}


def rendered(counts: Mapping[str, Count]) -> str:
    whole = Count(*map(sum, zip(*counts.values(), strict=True)))
    rows = ["| file | sequences | requests |", "| --- | --- | --- |"]
    rows += [_row(f"`{file}`", counts[file]) for file in sorted(counts)]
    return HEAD + "\n".join((*rows, _row("together", whole))) + "\n"


def _row(name: str, count: Count) -> str:
    return f"| {name} | {count.sequences:,} | {count.requests:,} |"
