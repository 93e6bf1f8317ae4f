"""Sets of a Job's indexes: as text, such as `1,3-5,7`, and as ranges that are apart and in order.

What is done with two sets costs what their ranges are, however many indexes these have.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from heapq import merge
from itertools import islice


def parse_indexes(text: str, completions: int) -> list[range]:
    """Raises ValueError, in Kubernetes' words."""
    found: list[range] = []
    for part in text.split(",") if text else []:
        span = _span(part, completions)
        if found and span[0] <= found[-1][-1]:
            raise ValueError(f"non-increasing order, previous: {found[-1][-1]}, current: {span[0]}")
        found.append(span)
    return found


def readable_indexes(text: str, completions: int) -> Iterator[range]:
    """Those parts of a text that are valid by themselves, in whatever order."""
    for part in text.split(",") if text else ():
        with suppress(ValueError):
            yield _span(part, completions)


def overlap(one: Iterable[range], other: Iterable[range]) -> int | None:
    """The first index that both have, looking at each part once: some are missed of parts that are out of
    order."""
    ours, theirs = iter(one), iter(other)
    mine, yours = next(ours, None), next(theirs, None)
    while mine is not None and yours is not None:
        if mine[-1] < yours[0]:
            mine = next(ours, None)
        elif yours[-1] < mine[0]:
            yours = next(theirs, None)
        else:
            return max(mine[0], yours[0])
    return None


def _span(text: str, completions: int) -> range:
    """Raises ValueError."""
    limits = text.split("-")
    if len(limits) > 2:
        why = "an index interval can have at most two parts separated by '-'"
        raise ValueError(f'the fragment "{text}" violates the requirement that {why}')
    low, high = _index(limits[0], completions), _index(limits[-1], completions)
    if len(limits) > 1 and low >= high:
        raise ValueError(f"non-increasing order, previous: {low}, current: {high}")
    return range(low, high + 1)


def _index(text: str, completions: int) -> int:
    if not re.fullmatch("[+-]?[0-9]{1,18}", text, re.ASCII):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    index = int(text)
    if index >= completions:
        raise ValueError(f'too large index: "{text}"')
    return index


def indexes_below(text: str, completions: int) -> list[range]:
    """Those of a valid text that are below `completions`."""
    found = (part.partition("-") for part in text.split(",")) if text else ()
    spans = (range(int(low), min(int(high or low) + 1, completions)) for low, _, high in found)
    return union([span for span in spans if span], [])


def as_ranges(indexes: Iterable[int]) -> list[range]:
    return union([range(index, index + 1) for index in sorted(indexes)], [])


def write_indexes(ranges: Iterable[range]) -> str:
    """Two that follow each other are written as two."""
    return ",".join(
        f"{part[0]}{',' if len(part) == 2 else '-'}{part[-1]}" if len(part) > 1 else str(part[0])
        for part in ranges
    )


def total(ranges: Iterable[range]) -> int:
    return sum(map(len, ranges))


def union(one: list[range], other: list[range]) -> list[range]:
    """Both must be in order."""
    found: list[range] = []
    for part in merge(one, other, key=lambda part: part.start):
        if found and part.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, part.stop))
        else:
            found.append(part)
    return found


def has_index(ranges: list[range], index: int) -> bool:
    at = bisect_right(ranges, index, key=lambda part: part.start)
    return at > 0 and index in ranges[at - 1]


def common(one: list[range], other: list[range]) -> int:
    """How many indexes both have."""
    return total(one) + total(other) - total(union(one, other))


def first_missing(ranges: list[range], completions: int, count: int) -> list[int]:
    """The first `count` indexes below `completions` that are not among them."""

    def missing() -> Iterator[int]:
        at = 0
        for part in ranges:
            yield from range(at, min(part.start, completions))
            at = part.stop
        yield from range(at, completions)

    return list(islice(missing(), count))
