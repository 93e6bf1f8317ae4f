"""No cache of the project holds what clients care to send: `remembered` bounds its keys, and every other one
has keys that no client chooses, for a reason that is written down here."""

from __future__ import annotations

import re
from pathlib import Path

from podling.model.remembered import remembered

SOURCE = Path(__file__).parents[2] / "src/podling"
COUNTED = {
    "model/remembered.py": "bounds its keys",
    "model/names.py": "looks at LONGEST_REMEMBERED",
    "apiserver/authz/rbac.py": "looks at LONGEST",
    "apiserver/http/server.py": "status, content type and second of 64 answers",
    "apiserver/authn/certificates.py": "subjects that the cluster's authority has signed",
    "network/table.py": "names of chains, which differ in numbers of endpoints",
    "process/hpack.py": "header blocks of servers of gRPC, none longer than a frame",
    "apiserver/http/local.py": "queries of the project's own parts",
}
OF_THE_PROJECT = {
    *("", "type_", "annotation", "owner", "info", "rows", "shape", "target", "level"),
    # A truth value: two entries.
    "bindings",
}
"""What caches without a bound are keyed by: the project's own types, and the resources, subresources and
levels of security that it serves, of which there are so many."""


def test_every_cache_is_bounded() -> None:
    sources = {str(file.relative_to(SOURCE)): file.read_text() for file in SOURCE.rglob("*.py")}
    assert {name for name, text in sources.items() if "lru_cache(" in text} == set(COUNTED)
    endless = r"@(?:functools\.)?(?:cache|lru_cache)\n\s*def \w+\((\w*)"
    keys = [(name, key) for name, text in sources.items() for key in re.findall(endless, text)]
    assert keys and [(name, key) for name, key in keys if key not in OF_THE_PROJECT] == []


def test_what_is_long_is_not_remembered() -> None:
    asked: list[str] = []

    @remembered(2, longest=3)
    def upper(text: str) -> str:
        asked.append(text)
        return text.upper()

    assert [upper(text) for text in ("abc", "abc", "abcd", "abcd")] == ["ABC", "ABC", "ABCD", "ABCD"]
    assert asked == ["abc", "abcd", "abcd"]
    upper("b"), upper("c"), upper("abc")
    assert asked[3:] == ["b", "c", "abc"], "more than two are not kept"
