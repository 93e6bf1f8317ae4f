"""A PATCH body by its media type."""

from __future__ import annotations

import pytest

from podling.apiserver.patch.parse import parse_patch
from podling.model.errors import StatusError
from podling.model.types.pod import Pod

POD = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "a"}]}}


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        ("json-patch", b'[{"op":"remove","path":"/metadata/labels"}]', {"metadata": {}, "spec": POD["spec"]}),
        (
            "merge-patch",
            b'{"spec":{"containers":[]}}',
            {"metadata": POD["metadata"], "spec": {"containers": []}},
        ),
        ("strategic-merge-patch", b'{"spec":{"containers":[]}}', {**POD, "kind": "Pod", "apiVersion": "v1"}),
        ("strategic-merge-patch", b"null", {**POD, "kind": "Pod", "apiVersion": "v1"}),
        ("json-patch", b"null", POD),
    ],
)
def test_each_type_is_applied_its_way(media_type: str, body: bytes, expected: object) -> None:
    patch = parse_patch(f"application/{media_type}+json", body, Pod).apply
    assert patch(POD) == expected
    assert patch(POD) == expected


@pytest.mark.parametrize(
    ("media_type", "body", "code"),
    [
        ("application/apply-patch+yaml", b"{}", 415),
        ("application/json", b"{}", 415),
        ("application/merge-patch+json", b"{", 400),
        ("application/merge-patch+json", b"[]", 400),
        ("application/merge-patch+json", b"[" * 100_000, 400),
        ("application/strategic-merge-patch+json", b'"x"', 400),
        ("application/json-patch+json", b'[{"op":"replace","path":"","value":1}]', 422),
    ],
)
def test_what_is_refused(media_type: str, body: bytes, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        parse_patch(media_type, body, Pod).apply(POD)
    assert refused.value.code == code


def test_a_patch_too_deep_is_the_senders_fault() -> None:
    depth = 900
    body = b'{"a":' * depth + b"1" + b"}" * depth
    try:
        parse_patch("application/merge-patch+json", body, Pod).apply(POD)
    except StatusError as refused:
        assert refused.code == 400
