"""Validation of claims for devices, of templates of claims, and of classes of devices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from podling.apiserver.cel.checker import Expression
from podling.apiserver.rules.container.resources import is_extended
from podling.apiserver.rules.devices.parts import (
    EFFECTS,
    MAX_CONFIGS,
    MAX_PARAMETERS,
    Faults,
    expressions_of,
    validate_configuration,
    validate_fully_qualified,
    validate_label,
    validate_list,
    validate_selectors,
)
from podling.apiserver.rules.field import all_invalid, invalid, not_supported, required
from podling.apiserver.rules.metadata import validate_label_key
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.resource import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)

MAX_REQUESTS = MAX_CONSTRAINTS = 32
MAX_ALTERNATIVES = 8
ALL, EXACT_COUNT = "All", "ExactCount"
OPERATORS = ("Equal", "Exists")
QUOTA_PREFIX = "requests."
ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
NO_SUCH_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

Requests = Mapping[str, Collection[str]]
"""The names of the requests of a claim, and of the alternatives of each."""
Asked = ExactDeviceRequest | DeviceSubRequest


def default_claim(claim: DeviceClaim) -> None:
    for request in claim.requests:
        for asked in _asked(request):
            asked.allocation_mode = asked.allocation_mode or EXACT_COUNT
            if asked.allocation_mode == EXACT_COUNT:
                asked.count = asked.count or 1
            default_tolerations(asked.tolerations)


def default_tolerations(tolerations: list[DeviceToleration]) -> None:
    for toleration in tolerations:
        toleration.operator = toleration.operator or "Equal"


def _asked(request: DeviceRequest) -> Iterator[Asked]:
    if request.exactly is not None:
        yield request.exactly
    yield from request.first_available


def requests_of(claim: DeviceClaim) -> Requests:
    return {
        request.name: frozenset(alternative.name for alternative in request.first_available)
        for request in claim.requests
    }


def expressions_of_claim(claim: DeviceClaim, path: str) -> Iterator[tuple[str, Expression]]:
    """Every expression by its path."""
    for i, request in enumerate(claim.requests if len(claim.requests) <= MAX_REQUESTS else ()):
        where = f"{path}.requests[{i}]"
        if request.exactly is not None:
            yield from expressions_of(request.exactly.selectors, f"{where}.exactly.selectors")
        for j, alternative in enumerate(request.first_available[:MAX_ALTERNATIVES]):
            yield from expressions_of(alternative.selectors, f"{where}.firstAvailable[{j}].selectors")


def validate_claim(claim: DeviceClaim, faults: Faults, path: str) -> Iterator[Cause]:
    """`faults`: of the expressions."""
    requests = requests_of(claim)
    yield from validate_list(
        claim.requests,
        MAX_REQUESTS,
        partial(_validate_request, faults),
        f"{path}.requests",
        lambda request: request.name,
    )
    constraints = partial(_validate_constraint, requests)
    yield from validate_list(claim.constraints, MAX_CONSTRAINTS, constraints, f"{path}.constraints")
    yield from validate_list(
        claim.config, MAX_CONFIGS, partial(_validate_claim_configuration, requests), f"{path}.config"
    )


def _validate_request(faults: Faults, request: DeviceRequest, path: str) -> Iterator[Cause]:
    yield from validate_label(request.name, f"{path}.name")
    if request.exactly is not None and request.first_available:
        yield invalid(path, None, f"{ONE_OF}, but multiple fields are set")
    elif request.exactly is not None:
        yield from _validate_asked(request.exactly, faults, f"{path}.exactly")
    elif request.first_available:
        yield from validate_list(
            request.first_available,
            MAX_ALTERNATIVES,
            partial(_validate_alternative, faults),
            f"{path}.firstAvailable",
            lambda alternative: alternative.name,
        )
    else:
        yield required(path, ONE_OF)


def _validate_alternative(faults: Faults, alternative: DeviceSubRequest, path: str) -> Iterator[Cause]:
    yield from validate_label(alternative.name, f"{path}.name")
    yield from _validate_asked(alternative, faults, path)


def _validate_asked(asked: Asked, faults: Faults, path: str) -> Iterator[Cause]:
    name, count = asked.device_class_name, asked.count
    if not name:
        yield required(f"{path}.deviceClassName")
    else:
        yield from all_invalid(f"{path}.deviceClassName", name, names.dns1123_subdomain(name))
    yield from validate_selectors(asked.selectors, faults, f"{path}.selectors")
    if asked.allocation_mode == ALL:
        if count:
            yield invalid(f"{path}.count", count, f"must not be specified when allocationMode is '{ALL}'")
    elif asked.allocation_mode == EXACT_COUNT:
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield not_supported(f"{path}.allocationMode", asked.allocation_mode, (ALL, EXACT_COUNT))
    yield from _validate_tolerations(asked.tolerations, f"{path}.tolerations")


def _validate_tolerations(tolerations: list[DeviceToleration], path: str) -> Iterator[Cause]:
    for i, one in enumerate(tolerations):
        where = f"{path}[{i}]"
        if one.key:
            yield from validate_label_key(one.key, f"{where}.key")
        if one.operator == "Exists":
            if one.value:
                yield invalid(f"{where}.value", one.value, "must be empty for operator `Exists`")
        elif one.operator == "Equal":
            yield from all_invalid(f"{where}.value", one.value, names.label_value(one.value))
        else:
            yield not_supported(f"{where}.operator", one.operator, OPERATORS)
        if one.effect and one.effect not in EFFECTS:
            yield not_supported(f"{where}.effect", one.effect, EFFECTS)


def _validate_constraint(requests: Requests, constraint: DeviceConstraint, path: str) -> Iterator[Cause]:
    yield from validate_references(constraint.requests, requests, f"{path}.requests")
    if constraint.match_attribute is not None:
        yield from validate_fully_qualified(constraint.match_attribute, f"{path}.matchAttribute")
    elif constraint.distinct_attribute is not None:
        yield from validate_fully_qualified(constraint.distinct_attribute, f"{path}.distinctAttribute")
    else:
        # Kubernetes says so also where none is set.
        why = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        )
        yield required(path, why)


def _validate_claim_configuration(
    requests: Requests, config: DeviceClaimConfiguration, path: str
) -> Iterator[Cause]:
    yield from validate_references(config.requests, requests, f"{path}.requests")
    yield from validate_configuration(config, path)


def validate_references(references: list[str], requests: Requests, path: str) -> Iterator[Cause]:
    """Of names of requests, or of one of the alternatives of a request: `r/a`."""
    return validate_list(
        references, MAX_REQUESTS, partial(validate_reference, requests), path, lambda reference: reference
    )


def validate_reference(requests: Requests, reference: str, path: str) -> Iterator[Cause]:
    request, slash, alternative = reference.partition("/")
    if "/" in alternative:
        yield invalid(path, reference, NO_SUCH_REQUEST)
        return
    yield from validate_label(request, path)
    if slash:
        yield from validate_label(alternative, path)
    if request not in requests or (slash and alternative not in requests[request]):
        yield invalid(path, reference, NO_SUCH_REQUEST)


def validate_class(
    new: DeviceClassSpec, faults: Faults, old: DeviceClassSpec | None = None
) -> Iterator[Cause]:
    """`faults`: of the expressions."""
    yield from validate_selectors(new.selectors, faults, "spec.selectors")
    longest = float("inf") if old is not None and new.config == old.config else MAX_PARAMETERS
    yield from validate_list(
        new.config,
        MAX_CONFIGS,
        lambda config, path: validate_configuration(config, path, longest),
        "spec.config",
    )
    name = new.extended_resource_name
    if name is not None and (not is_extended(name) or names.qualified_name(f"{QUOTA_PREFIX}{name}")):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")
