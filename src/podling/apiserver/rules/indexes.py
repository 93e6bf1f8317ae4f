"""Sets of a Job's indexes as text, such as `1,3-5,7`."""

from __future__ import annotations

import re


def parse_indexes(text: str, completions: int) -> list[range]:
    """Raises ValueError, in Kubernetes' words."""
    found: list[range] = []
    for part in text.split(",") if text else []:
        limits = part.split("-")
        if len(limits) > 2:
            why = "an index interval can have at most two parts separated by '-'"
            raise ValueError(f'the fragment "{part}" violates the requirement that {why}')
        low = _index(limits[0], completions)
        if found and low <= found[-1][-1]:
            raise ValueError(f"non-increasing order, previous: {found[-1][-1]}, current: {low}")
        high = _index(limits[-1], completions)
        if len(limits) > 1 and low >= high:
            raise ValueError(f"non-increasing order, previous: {low}, current: {high}")
        found.append(range(low, high + 1))
    return found


def overlap(one: list[range], other: list[range]) -> int | None:
    """The first index that both have."""
    last = -1
    for least, most in sorted((part[0], part[-1]) for part in (*one, *other)):
        # Those of one list are apart: what begins before another ends is of the other list.
        if least <= last:
            return least
        last = most
    return None


def _index(text: str, completions: int) -> int:
    if not re.fullmatch("[+-]?[0-9]{1,18}", text, re.ASCII):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    index = int(text)
    if index >= completions:
        raise ValueError(f'too large index: "{text}"')
    return index
