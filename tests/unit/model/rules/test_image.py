"""R-SYS-2: what a reference of an image says."""

from __future__ import annotations

import pytest

from podling.model.rules.image import tag_of

SHA = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("a", "latest"),
        ("a:latest", "latest"),
        (f"a:latest@{SHA}", "latest"),
        ("localhost:5000/a", "latest"),
        ("A/b", "latest"),
        ("[::1]:5000/a__b", "latest"),
        ("a:v1", "v1"),
        (f"a@{SHA}", ""),
        *((wrong, "") for wrong in ("", "A", "a/B", "a:", "/a", "a//b", "a.b/c d", "a@sha256:b", "a___b")),
        *((wrong, "") for wrong in ("a" * 64, "x" * 300, f"a@{SHA.upper()}", f"a:{'t' * 129}", "-a", "é")),
    ],
)
def test_a_tag_goes_without_saying_only_where_there_is_a_name(image: str, tag: str) -> None:
    assert tag_of(image) == tag
