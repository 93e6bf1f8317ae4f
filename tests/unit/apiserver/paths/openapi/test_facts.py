"""R-SYS-1: what is published of every field stays what Kubernetes publishes.

`published.txt` is what `tests/peer/test_openapi.py` found to be alike; after a change that it agrees with,
`python tests/unit/apiserver/paths/openapi/test_facts.py` writes it anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from peer.openapi_facts import facts_of, read, written
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.openapi.documents import OpenAPI

OF_A_GROUP = ("meta.v1.DeleteOptions", "meta.v1.WatchEvent")
"""Types that name the document's group; all others are the same in every document."""
PUBLISHED = Path(__file__).with_name("published.txt")


def published() -> dict[str, list[str]]:
    openapi = OpenAPI(KINDS, "v1.36.0")
    found: dict[str, list[str]] = {}
    for path in msgspec.json.decode(openapi._document("/openapi/v3"))["paths"]:
        facts = facts_of(msgspec.json.decode(openapi._document(f"/openapi/v3/{path}")))
        found |= {name: facts[name] for name in facts if name not in OF_A_GROUP}
    return found


def test_nothing_published_has_changed() -> None:
    known, found = read(PUBLISHED.read_text()), published()
    assert found.keys() == known.keys()
    unlike: dict[str, Any] = {name: set(found[name]) ^ set(known[name]) for name in found}
    assert not {name: lines for name, lines in unlike.items() if lines}


if __name__ == "__main__":
    PUBLISHED.write_text(written(published()))
