"""How the fields of an API type are patched, read from the merge metadata of the types."""

from __future__ import annotations

import functools
import typing
from typing import Any

from podling.apiserver.patch.strategic import Field, Lookup, untyped
from podling.model.fields import FieldInfo, fields_of, is_struct, item_type


@functools.cache
def lookup_of(annotation: Any) -> Lookup:
    """Fields by wire name; of unknown ones nothing is known, as of maps whose keys are data."""
    if not is_struct(annotation):
        return untyped
    fields = fields_of(annotation)

    def lookup(name: str) -> Field:
        return _field(fields[name]) if name in fields else Field(untyped)

    return lookup


@functools.cache
def _field(info: FieldInfo) -> Field:
    is_list = typing.get_origin(info.type) is list
    inner = item_type(info.type) if is_list else info.type
    return Field(lookup_of(inner), "merge" in info.merge.strategies, info.merge.key)
