"""Validation of meta/v1 conditions, as the status of newer kinds carries them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.rules.field import duplicate, invalid, not_supported, required, too_long
from podling.apiserver.rules.metadata import validate_label_key
from podling.model.errors import Cause
from podling.model.types.meta import Condition

STATUSES = ("False", "True", "Unknown")
LONGEST_REASON, LONGEST_MESSAGE = 1024, 32 * 1024
_REASON_PATTERN = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON = re.compile(_REASON_PATTERN)
_NO_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  "
    "or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON_PATTERN}')"
)


def validate_conditions(
    conditions: list[Condition], path: str, missing: str = "must be set"
) -> Iterator[Cause]:
    """`missing`: what is said of a time or a reason that is not there."""
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        if condition.type in seen:
            yield duplicate(f"{path}[{i}].type", condition.type)
        seen.add(condition.type)
        where = f"{path}[{i}]"
        yield from validate_label_key(condition.type, f"{where}.type")
        if condition.status not in STATUSES:
            yield not_supported(f"{where}.status", condition.status, STATUSES)
        if condition.observed_generation < 0:
            why = "must be greater than or equal to zero"
            yield invalid(f"{where}.observedGeneration", condition.observed_generation, why)
        if not condition.last_transition_time:
            yield required(f"{where}.lastTransitionTime")
        if not condition.reason:
            yield required(f"{where}.reason")
        else:
            if not _REASON.fullmatch(condition.reason):
                yield invalid(f"{where}.reason", condition.reason, _NO_REASON)
            if len(condition.reason.encode()) > LONGEST_REASON:
                yield too_long(f"{where}.reason", LONGEST_REASON)
        if len(condition.message.encode()) > LONGEST_MESSAGE:
            yield too_long(f"{where}.message", LONGEST_MESSAGE)
