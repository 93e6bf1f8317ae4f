"""YAML bodies, read as Kubernetes reads them: converted to JSON at once, with dates kept as text.

The parser's events are checked before anything is built from them. Deep nesting is refused, because libyaml's
binding builds a document recursively, and so are aliases, because a few lines of them can unfold to any size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import yaml

from podling.model.codec.yaml import CLoader
from podling.model.errors import bad_request

DEEPEST = 500


class YamlBody(NamedTuple):
    json: bytes
    repeated: list[str]
    """A complaint for each key that is given twice."""


def read_yaml(body: bytes) -> YamlBody:
    """Raises StatusError 400."""
    try:
        repeated = _repeated_keys(body)
        return YamlBody(msgspec.json.encode(yaml.load(body, CLoader)), repeated)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from error


class _Collection:
    """One that is open; in a mapping keys and values take turns."""

    def __init__(self, *, is_mapping: bool) -> None:
        self.keys: set[str] = set()
        self.key_is_next = is_mapping
        self._is_mapping = is_mapping

    def step(self) -> None:
        self.key_is_next = self._is_mapping and not self.key_is_next


def _repeated_keys(body: bytes) -> list[str]:
    """Raises YAMLError for aliases and for what nests too deeply."""
    repeated: list[str] = []
    open_: list[_Collection] = [_Collection(is_mapping=False)]
    for event in yaml.parse(body, CLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not accepted")
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
        elif isinstance(event, yaml.NodeEvent):
            repeated += _repetition(open_[-1], event)
            open_[-1].step()
            if isinstance(event, yaml.CollectionStartEvent):
                open_.append(_Collection(is_mapping=isinstance(event, yaml.MappingStartEvent)))
        if len(open_) > DEEPEST:
            raise yaml.YAMLError("exceeded max depth")
    return repeated


def _repetition(collection: _Collection, event: Any) -> list[str]:
    if not collection.key_is_next or not isinstance(event, yaml.ScalarEvent):
        return []
    if event.value in collection.keys:
        line = event.start_mark.line + 1 if event.start_mark else 0
        return [f'line {line}: key "{event.value}" already set in map']
    collection.keys.add(event.value)
    return []
