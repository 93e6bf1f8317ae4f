"""R-SYS-8: reviews and what else is posted and answered, but not stored: in every form, good and bad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from peer.test_verbs_of_every_kind import FORMS

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io/v1", "authentication.k8s.io/v1"
ASKED = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
HERE = {"user": "u", "resourceAttributes": {**ASKED["resourceAttributes"], "namespace": "{ns}"}}
REVIEWS: list[tuple[str, str, Any]] = [
    (AUTHORIZATION, "SubjectAccessReview", {"spec": {"user": "u", **ASKED}}),
    (AUTHORIZATION, "SelfSubjectAccessReview", {"spec": ASKED}),
    (AUTHORIZATION, "LocalSubjectAccessReview", {"spec": HERE}),
    (AUTHENTICATION, "TokenReview", {"spec": {"token": "x"}}),
    (AUTHENTICATION, "SelfSubjectReview", {}),
]
TOKEN = "/api/v1/namespaces/{ns}/serviceaccounts/default/token"


def asked(version: str, kind: str, body: Any) -> Iterator[Ask]:
    place = "namespaces/{ns}/" if kind.startswith("Local") else ""
    target = f"/apis/{version}/{place}{kind.lower()}s"
    whole = {"apiVersion": version, "kind": kind, **body}
    for form in ("application/json", *FORMS):
        for sent in (whole, {}):
            yield Ask("POST", target, sent, {"Accept": form})
    for options in ("dryRun=All", "dryRun=Some", "fieldManager=f", "fieldManager=%07", "pretty=1"):
        yield Ask("POST", f"{target}?{options}", whole)
    for wrong in (
        {**whole, "metadata": {"name": "a", "labels": {"a": "b"}}}, {**whole, "status": {"allowed": True}},
        {**whole, "spec": {}}, {**whole, "spec": 1}, {**whole, "kind": "Pod"}, b"", b"[]",
    ):  # fmt: skip
        yield Ask("POST", target, wrong)


@pytest.mark.parametrize(("version", "kind", "body"), REVIEWS, ids=lambda part: str(part)[:25])
def test_reviews(version: str, kind: str, body: Any, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(kind, list(asked(version, kind, body)), apart=True)
    found = unnamed(differences(sequence, "reviews", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def test_tokens(kubernetes: Server, podling: Server) -> None:
    whole = {"apiVersion": AUTHENTICATION, "kind": "TokenRequest", "spec": {"audiences": ["a"]}}
    asks = [Ask("POST", TOKEN, whole, {"Accept": form}) for form in ("application/json", *FORMS)]
    secret = {"metadata": {"name": "s"}}
    bound = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    asks.append(Ask("POST", "/api/v1/namespaces/{ns}/secrets", secret))
    asks.append(Ask("POST", TOKEN, {**whole, "spec": {"audiences": ["a"], "boundObjectRef": bound}}))
    sequence = Compared("tokens", asks, apart=True)
    found = unnamed(differences(sequence, "reviews", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
