"""Validation of what a claim may ask of a capacity that several claims share: one of some values, or a range
in steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from podling.apiserver.rules.field import duplicate, forbidden, invalid, required, too_many
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.types.resource import CapacityRequestPolicy, CapacityRequestPolicyRange

MAX_VALUES = 10
BOTH = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def validate_policy(policy: CapacityRequestPolicy, most: Quantity, path: str) -> Iterator[Cause]:
    """`most`: the whole capacity."""
    values, within = policy.valid_values, policy.valid_range
    if values and within is not None:
        yield forbidden(path, BOTH)
        return
    given = "validValues" if values else "validRange"
    if not values and within is None:
        return
    if policy.default is None:
        yield required(f"{path}.default", f"required when {given} is defined")
    elif within is None:
        yield from _validate_values(values, policy.default, most, f"{path}.validValues")
    else:
        yield from _validate_range(within, policy.default, most, f"{path}.validRange")


def _validate_values(values: list[Quantity], default: Quantity, most: Quantity, path: str) -> Iterator[Cause]:
    for i, (one, other) in enumerate(pairwise(values), 1):
        if one > other:
            yield invalid(f"{path}[{i}]", other, "values must be sorted in ascending order")
    if len(values) > MAX_VALUES:
        yield too_many(path, len(values), MAX_VALUES)
    else:
        for i, value in enumerate(values):
            if value > most:
                yield invalid(f"{path}[{i}]", value, f"option is larger than capacity value: {most}")
        seen: set[int] = set()
        for i, value in enumerate(values):
            if value.value() in seen:
                yield duplicate(f"{path}[{i}]", str(value.value()))
            seen.add(value.value())
    # Of too many values Kubernetes looks at none.
    if len(values) > MAX_VALUES or default not in values:
        yield invalid(path, default, "default value is not valid according to the requestPolicy")


def _validate_range(
    within: CapacityRequestPolicyRange, default: Quantity, most: Quantity, path: str
) -> Iterator[Cause]:
    """Some faults stand at the bound that was crossed, and show what crossed it."""
    least, step = within.min, within.step
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if least > most:
        yield invalid(f"{path}.min", least, f"min is larger than capacity value: {most}")
    if default < least:
        yield invalid(f"{path}.min", default, f"default is less than min: {least}")
    if within.max is not None:
        if least > within.max:
            yield invalid(f"{path}.max", least, f"min is larger than max: {within.max}")
        if within.max > most:
            yield invalid(f"{path}.max", within.max, f"max is larger than capacity value: {most}")
        if default > within.max:
            yield invalid(f"{path}.max", default, f"default is more than max: {within.max}")
    if step is None:
        return
    if least + step > most:
        yield invalid(f"{path}.step", step, f"one step {least + step} is larger than capacity value: {most}")
    if not step.value():
        # Kubernetes 1.36 divides by it, and answers nothing.
        yield invalid(f"{path}.step", step, "must be greater than zero")
        return
    for value in (default, within.max):
        if value is not None and (value.value() - least.value()) % step.value():
            why = f"value is not a multiple of a given step ({step}) from ({least})"
            yield invalid(f"{path}.step", value, why)
