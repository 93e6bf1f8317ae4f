"""What is wrong with an AuthorizationConfiguration, in Kubernetes' words, and the authorizers it makes."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from podling.apiserver.authz.configuration import (
    ACCESS,
    DENY,
    IN_CLUSTER,
    KUBECONFIG_FILE,
    NO_OPINION,
    VERSIONS,
    WEBHOOK,
    AuthorizationConfiguration,
    ConnectionInfo,
    Step,
    WebhookConfiguration,
    WebhookSettings,
)
from podling.apiserver.cel.checker import Expression, faults
from podling.apiserver.rules import field
from podling.apiserver.rules.configuration_file import ConfigurationError, all_faults, read_file
from podling.model import names
from podling.model.errors import Cause
from podling.model.rules.authorization_modes import SERVED
from podling.model.time import go_duration, parse_duration

LONGEST_PATIENCE = 30.0
"""Seconds that a webhook may be given."""
MOST_CONDITIONS = 64
REVIEW_VERSIONS = ("v1", "v1beta1")
TTL_OF_ALLOWED, TTL_OF_OTHERS = 300.0, 30.0
"""Seconds, if nothing is said of them."""


def read_configuration(data: bytes) -> Sequence[Step]:
    """The authorizers that a configuration names, from JSON. To be called in a thread: its expressions are
    compiled, and files are looked for. Raises ConfigurationError."""
    kinds = [(AuthorizationConfiguration.KIND, version) for version in VERSIONS]
    try:
        configuration = read_file(data, AuthorizationConfiguration, kinds)
        times = [_times(one.webhook or WebhookConfiguration()) for one in configuration.authorizers]
    except ConfigurationError as error:
        raise ConfigurationError(f"failed to load AuthorizationConfiguration from file: {error}") from error
    if told := all_faults(_faults(configuration, times)):
        raise ConfigurationError(told)
    steps = [
        Step(one.type, one.name, _settings(one.name, one.webhook, said) if one.webhook is not None else None)
        for one, said in zip(configuration.authorizers, times, strict=True)
    ]
    misnamed = [
        f"expected name {one.type.lower()} for authorizer {one.type} instead of {one.name}"
        for one in steps
        if one.webhook is None and one.name != one.type.lower()
    ]
    if misnamed:
        raise ConfigurationError(misnamed[0] if len(misnamed) == 1 else f"[{', '.join(misnamed)}]")
    return steps


class _Times(msgspec.Struct, frozen=True):
    """Seconds; 0 for what is not said."""

    timeout: float
    allowed: float
    others: float


def _times(said: WebhookConfiguration) -> _Times:
    """Raises ConfigurationError for what is no duration."""
    return _Times(*(_seconds(text) for text in (said.timeout, said.authorized_TTL, said.unauthorized_TTL)))


def _seconds(text: str) -> float:
    if text in ("", "0"):
        return 0.0
    try:
        span = parse_duration(text.lstrip("+-")).total_seconds()
    except ValueError as error:
        raise ConfigurationError(f'time: invalid duration "{text}"') from error
    return -span if text.startswith("-") else span


def _settings(name: str, said: WebhookConfiguration, times: _Times) -> WebhookSettings:
    return WebhookSettings(
        said.connection_info.kube_config_file or "",
        name,
        said.subject_access_review_version,
        times.timeout,
        (times.allowed or TTL_OF_ALLOWED) if said.cache_authorized_requests else 0.0,
        (times.others or TTL_OF_OTHERS) if said.cache_unauthorized_requests else 0.0,
        said.failure_policy == DENY,
        tuple(one.expression for one in said.match_conditions),
    )


def _faults(configuration: AuthorizationConfiguration, times: Sequence[_Times]) -> Iterator[Cause]:
    if not configuration.authorizers:
        yield field.required("authorizers", "at least one authorization mode must be defined")
    types, known = set[str](), set[str]()
    for index, (one, said) in enumerate(zip(configuration.authorizers, times, strict=True)):
        path = f"authorizers[{index}]"
        if not one.type:
            yield field.required(f"{path}.type")
            continue
        if one.type in types and one.type != WEBHOOK:
            yield field.duplicate(f"{path}.type", one.type)
            continue
        types.add(one.type)
        if one.type not in SERVED:
            yield field.not_supported(f"{path}.type", one.type, sorted(SERVED))
            continue
        if not one.name:
            yield field.required(f"{path}.name")
        elif one.name in known:
            yield field.duplicate(f"{path}.name", one.name)
        else:
            for fault in names.dns1123_subdomain(one.name):
                yield field.invalid(f"{path}.name", one.name, f"authorizer name is invalid: {fault}")
        known.add(one.name)
        if one.type != WEBHOOK:
            if one.webhook is not None:
                yield field.invalid(f"{path}.webhook", "non-null", "may only be specified when type=Webhook")
        elif one.webhook is None:
            yield field.required(f"{path}.webhook", "required when type=Webhook")
        else:
            yield from _webhook_faults(one.webhook, said, path)


def _webhook_faults(said: WebhookConfiguration, times: _Times, path: str) -> Iterator[Cause]:
    if not times.timeout:
        yield field.required(f"{path}.timeout")
    elif not 0 < times.timeout <= LONGEST_PATIENCE:
        yield field.invalid(f"{path}.timeout", _told(times.timeout), "must be > 0s and <= 30s")
    for name, span in (("authorizedTTL", times.allowed), ("unauthorizedTTL", times.others)):
        if span < 0:
            yield field.invalid(f"{path}.{name}", _told(span), "must be > 0s")
    yield from _named(
        f"{path}.subjectAccessReviewVersion", said.subject_access_review_version, REVIEW_VERSIONS
    )
    where, version = (
        f"{path}.matchConditionSubjectAccessReviewVersion",
        said.match_condition_subject_access_review_version,
    )
    if version or said.match_conditions:
        why = "required if match conditions are specified"
        yield from _named(where, version, REVIEW_VERSIONS[:1], why)
    yield from _named(f"{path}.failurePolicy", said.failure_policy, (NO_OPINION, DENY))
    yield from _connection_faults(said.connection_info, f"{path}.connectionInfo")
    yield from _condition_faults([one.expression for one in said.match_conditions], f"{path}.matchConditions")


def _named(path: str, value: str, supported: Sequence[str], why: str = "") -> Iterator[Cause]:
    if not value:
        yield field.required(path, why)
    elif value not in supported:
        yield field.not_supported(path, value, supported)


def _told(span: float) -> str:
    return f"-{go_duration(timedelta(seconds=-span))}" if span < 0 else go_duration(timedelta(seconds=span))


def _connection_faults(said: ConnectionInfo, path: str) -> Iterator[Cause]:
    file, where = said.kube_config_file, f"{path}.kubeConfigFile"
    if not said.type:
        yield field.required(f"{path}.type")
    elif said.type == IN_CLUSTER:
        if file is not None:
            yield field.invalid(where, file, f"can only be set when type={KUBECONFIG_FILE}")
        else:
            yield field.invalid(f"{path}.type", said.type, "podling runs in no cluster of another API server")
    elif said.type != KUBECONFIG_FILE:
        shown = field.internal(said)
        yield field.not_supported(f"{path}.type", shown, (IN_CLUSTER, KUBECONFIG_FILE))
    elif not file:
        yield field.required(where)
    elif why := _file_fault(file):
        yield field.invalid(where, file, why)


def _file_fault(file: str) -> str:
    if not file.startswith("/"):
        return "must be an absolute path"
    try:
        found = Path(file).stat()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return f"error loading file: stat {file}: {why}"
    return "" if stat.S_ISREG(found.st_mode) else "must be a regular file"


def _condition_faults(texts: Sequence[str], path: str) -> Iterator[Cause]:
    if len(texts) > MOST_CONDITIONS:
        yield field.too_many(path, len(texts), MOST_CONDITIONS)
        return
    asked = {
        str(index): Expression(text, ("bool",), about=ACCESS)
        for index, text in enumerate(texts)
        if text.strip() and text not in texts[:index]
    }
    broken = faults(asked)
    for index, text in enumerate(texts):
        where = f"{path}[{index}].expression"
        if not text.strip():
            yield field.required(where)
        elif text in texts[:index]:
            yield field.duplicate(where, text)
        elif why := broken.get(str(index)):
            yield field.invalid(where, text, why)
