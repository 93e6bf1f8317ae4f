"""What claims, classes and slices of devices are made of alike: bounded lists, names of drivers, pools and
attributes, selectors, configuration for drivers, and conditions of a binding."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from podling.apiserver.cel.checker import TOO_COMPLEX, Expression
from podling.apiserver.rules.field import (
    all_invalid,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from podling.apiserver.rules.metadata import validate_label_key
from podling.apiserver.rules.volume.drivers import validate_csi_driver
from podling.model import names
from podling.model.codec import json
from podling.model.errors import Cause
from podling.model.types.resource import DeviceSelector, OpaqueDeviceConfiguration

T = TypeVar("T")
Rule = Callable[[T, str], Iterable[Cause]]
Faults = Mapping[str, str]
"""What is wrong with expressions, by their paths."""

MAX_SELECTORS = MAX_CONFIGS = 32
MAX_EXPRESSION = MAX_PARAMETERS = 10 * 1024
MAX_POOL = 253
MAX_IDENTIFIER = 32
MAX_BINDING_CONDITIONS = 4
IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*+")
NO_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)
EFFECTS = frozenset(("NoExecute", "NoSchedule", "None"))


class Bindable(Protocol):
    binding_conditions: list[str]
    binding_failure_conditions: list[str]


class Configuration(Protocol):
    opaque: OpaqueDeviceConfiguration | None


def validate_list(
    items: Sequence[T], most: int, rule: Rule[T], path: str, key: Callable[[T], Hashable] | None = None
) -> Iterator[Cause]:
    """Nothing but the length is told of a list that is too long. `key`: what no two items may share."""
    if len(items) > most:
        yield too_many(path, len(items), most)
        return
    for i, item in enumerate(items):
        yield from rule(item, f"{path}[{i}]")
    if key is not None:
        seen: set[Hashable] = set()
        for i, item in enumerate(items):
            if key(item) in seen:
                yield duplicate(f"{path}[{i}]", key(item))
            seen.add(key(item))


def validate_label(name: str, path: str) -> list[Cause]:
    """Of a device, a request, a counter."""
    return all_invalid(path, name, names.dns1123_label(name))


def validate_driver(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield required(path)
    else:
        yield from validate_csi_driver(name, path)


def validate_pool(name: str, path: str) -> Iterator[Cause]:
    """DNS subdomains with slashes between them."""
    if not name:
        yield required(path)
        return
    if len(name.encode()) > MAX_POOL:
        yield too_long(path, MAX_POOL)
    for part in name.split("/"):
        yield from all_invalid(path, part, names.dns1123_subdomain(part))


def validate_qualified(name: str, path: str) -> Iterator[Cause]:
    """Of an attribute or a capacity, with or without a domain. As in Kubernetes, a name with several slashes
    is not looked at."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from _validate_identifier(name, path)
        return
    if "/" in identifier:
        return
    if not domain:
        yield invalid(path, "", "the domain must not be empty")
    else:
        yield from validate_csi_driver(domain, path)
    if not identifier:
        yield invalid(path, "", "the name must not be empty")
    else:
        yield from _validate_identifier(identifier, path)


def validate_fully_qualified(name: str, path: str) -> Iterator[Cause]:
    yield from validate_qualified(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, name, why)


def _validate_identifier(name: str, path: str) -> Iterator[Cause]:
    if len(name.encode()) > MAX_IDENTIFIER:
        yield too_long(path, MAX_IDENTIFIER)
    if IDENTIFIER.fullmatch(name) is None:
        yield invalid(path, name, NO_IDENTIFIER)


def expressions_of(selectors: list[DeviceSelector], path: str) -> Iterator[tuple[str, Expression]]:
    """Every expression that is looked at, by its path."""
    for i, selector in enumerate(selectors if len(selectors) <= MAX_SELECTORS else ()):
        if selector.cel is not None and len(selector.cel.expression.encode()) <= MAX_EXPRESSION:
            yield f"{path}[{i}].cel.expression", Expression(selector.cel.expression, selects=True)


def validate_selectors(selectors: list[DeviceSelector], faults: Faults, path: str) -> Iterator[Cause]:
    return validate_list(selectors, MAX_SELECTORS, partial(_validate_selector, faults), path)


def _validate_selector(faults: Faults, selector: DeviceSelector, path: str) -> Iterator[Cause]:
    where = f"{path}.cel.expression"
    if selector.cel is None:
        yield required(f"{path}.cel")
    elif len(selector.cel.expression.encode()) > MAX_EXPRESSION:
        yield too_long(where, MAX_EXPRESSION)
    elif (why := faults.get(where)) == TOO_COMPLEX:
        yield forbidden(where, why)
    elif why:
        yield invalid(where, selector.cel.expression, why)


def validate_configuration(
    config: Configuration, path: str, longest: float = MAX_PARAMETERS
) -> Iterator[Cause]:
    """`longest`: bytes of the parameters; those that are stored already may be longer."""
    if (opaque := config.opaque) is None:
        yield required(f"{path}.opaque")
        return
    yield from validate_driver(opaque.driver, f"{path}.opaque.driver")
    yield from validate_raw(opaque.parameters, f"{path}.opaque.parameters", longest)


def validate_raw(value: Any, path: str, longest: float) -> Iterator[Cause]:
    """Of an object whose fields only a driver knows."""
    if value is None:
        yield required(path)
    elif len(json.encode(value)) > longest:
        yield too_long(path, int(longest))
    elif not isinstance(value, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")


def validate_binding(device: Bindable, path: str) -> Iterator[Cause]:
    """Of conditions that must hold, or must not, before a pod is bound to the node of a device."""
    wanted, failures = device.binding_conditions, device.binding_failure_conditions
    for name, listed in (("bindingConditions", wanted), ("bindingFailureConditions", failures)):
        yield from validate_list(listed, MAX_BINDING_CONDITIONS, validate_label_key, f"{path}.{name}")
    yield from _validate_repeated(wanted, f"{path}.bindingConditions")
    where = f"{path}.bindingFailureConditions"
    known = frozenset(wanted)
    seen: set[str] = set()
    for i, condition in enumerate(failures):
        if condition in seen:
            yield duplicate(f"{where}[{i}]", condition)
        seen.add(condition)
        if condition in known:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(f"{where}[{i}]", condition, why)
    if failures and not wanted:
        why = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(f"{path}.bindingConditions", None, why)
    if wanted and not failures:
        why = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(where, None, why)


def _validate_repeated(items: list[str], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, item in enumerate(items):
        if item in seen:
            yield duplicate(f"{path}[{i}]", item)
        seen.add(item)
