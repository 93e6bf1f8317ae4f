"""Bootstrap tokens: which secrets make one, and whom."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.authn.bootstrap import BootstrapTokens
from podling.apiserver.request.request import Request
from podling.model.codec.json import from_data
from podling.model.types.core import Secret

OWN = ("system:bootstrappers", "system:authenticated")
TOKEN = "abcdef.0123456789abcdef"
GOOD = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
}


class Now:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)


def groups(token: str, data: dict[str, str], **more: Any) -> tuple[str, ...] | None:
    """Of the user of a token, given one secret."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    secret = from_data({"type": "bootstrap.kubernetes.io/token", "data": encoded, **more}, Secret)

    def find(type: Any, namespace: str, name: str) -> Any:
        return secret if (namespace, name) == ("kube-system", "bootstrap-token-abcdef") else None

    user = BootstrapTokens(find, Now()).authenticate(
        Request("GET", "/", headers={"Authorization": f"Bearer {token}"})
    )
    assert user is None or user.name == "system:bootstrap:abcdef"
    return None if user is None else user.groups


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, OWN),
        ({"expiration": "2026-01-02T00:00:01Z"}, OWN),
        ({"expiration": "2026-01-02T01:00:01+01:00"}, OWN),
        ({"expiration": "2026-01-02T00:00:00Z"}, None),
        ({"expiration": "tomorrow"}, None),
        ({"expiration": "2026-01-03"}, None),
        ({"usage-bootstrap-authentication": "True"}, None),
        ({"usage-bootstrap-authentication": ""}, None),
        ({"token-id": "other1"}, None),
        ({"token-secret": "0123456789abcdeg"}, None),
        ({"auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a"},
         (OWN[0], "system:bootstrappers:a", "system:bootstrappers:b", OWN[1])),
        ({"auth-extra-groups": "system:masters"}, None),
        ({"auth-extra-groups": "system:bootstrappers:a,"}, None),
        ({"auth-extra-groups": "system:bootstrappers:A"}, None),
    ],
)  # fmt: skip
def test_what_a_secret_says(changes: dict[str, str], wanted: tuple[str, ...] | None) -> None:
    assert groups(TOKEN, {**GOOD, **changes}) == wanted


def test_secrets_of_another_type_and_those_that_go_make_none() -> None:
    assert groups(TOKEN, GOOD, type="Opaque") is None
    assert groups(TOKEN, GOOD, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}) is None


@pytest.mark.parametrize(
    "token", ["", "abcdef", "abcdef.", "Abcdef.0123456789abcdef", f"{TOKEN}0", "bcdefg.0123456789abcdef"]
)
def test_what_is_no_token_is_left_to_others(token: str) -> None:
    assert groups(token, GOOD) is None
