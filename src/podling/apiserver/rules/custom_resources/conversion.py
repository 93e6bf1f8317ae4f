"""Validation of the conversion of custom resources between versions, by a webhook or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.admission_registration import validate_webhook_client
from podling.apiserver.rules.field import forbidden, invalid, not_supported, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.apiextensions import CustomResourceConversion

STRATEGIES = ("None", "Webhook")
REVIEW_VERSIONS = ("v1", "v1beta1")


def validate_conversion(conversion: CustomResourceConversion, path: str) -> Iterator[Cause]:
    strategy, webhook = conversion.strategy, conversion.webhook
    client = webhook.client_config if webhook else None
    versions = webhook.conversion_review_versions or [] if webhook else []
    of_client, of_versions = f"{path}.webhookClientConfig", f"{path}.conversionReviewVersions"
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in STRATEGIES:
        yield not_supported(f"{path}.strategy", strategy, STRATEGIES)
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield forbidden(of_client, why)
        if versions:
            yield forbidden(of_versions, why)
        return
    if client is None:
        yield required(of_client, "required when strategy is set to Webhook")
    else:
        yield from validate_webhook_client(client, of_client)
    yield from _validate_versions(versions, of_versions)


def _validate_versions(versions: list[str], path: str) -> Iterator[Cause]:
    if not versions:
        yield required(path)
        return
    seen: set[str] = set()
    for i, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{path}[{i}]", version, "duplicate version")
            continue
        seen.add(version)
        for fault in names.dns1035_label(version):
            yield invalid(f"{path}[{i}]", version, fault)
    if seen.isdisjoint(REVIEW_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}")
