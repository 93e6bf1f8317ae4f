"""downwardAPI volumes and projections: facts about the pod itself as files. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from podling.kubelet.volumes.payload import File, Payload, VolumeError
from podling.model.pod import Pod
from podling.model.references import ResourceFieldSelector
from podling.model.volume import DownwardAPIVolumeFile

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")

ResourceValue = Callable[[ResourceFieldSelector], str]
"""Raises ValueError when there is no such container or resource."""


def payload(
    items: Iterable[DownwardAPIVolumeFile], pod: Pod, resource_value: ResourceValue, mode: int
) -> Payload:
    return {
        item.path: File(_text(item, pod, resource_value).encode(), mode if item.mode is None else item.mode)
        for item in items
    }


def _text(item: DownwardAPIVolumeFile, pod: Pod, resource_value: ResourceValue) -> str:
    try:
        if item.field_ref is not None:
            return _field(pod, item.field_ref.field_path)
        if item.resource_field_ref is not None:
            return resource_value(item.resource_field_ref)
    except ValueError as error:
        raise VolumeError(str(error)) from error
    return ""


def _field(pod: Pod, path: str) -> str:
    maps = {"labels": pod.metadata.labels, "annotations": pod.metadata.annotations}
    if subscript := _SUBSCRIPT.fullmatch(path):
        return maps[subscript[1]].get(subscript[2], "")
    plain: Mapping[str, Callable[[], str]] = {
        "metadata.name": lambda: pod.metadata.name,
        "metadata.namespace": lambda: pod.metadata.namespace,
        "metadata.uid": lambda: pod.metadata.uid,
        "metadata.labels": lambda: _lines(maps["labels"]),
        "metadata.annotations": lambda: _lines(maps["annotations"]),
    }
    if path not in plain:
        raise ValueError(f"unsupported fieldPath: {path}")
    return plain[path]()


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    """As Go's strconv.Quote writes a string."""
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b"}
    named |= {"\f": "\\f", "\v": "\\v"}
    return '"' + "".join(named.get(char) or _printable(char) for char in text) + '"'


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
