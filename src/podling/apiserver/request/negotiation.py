"""Content negotiation: the format of a body, from `Content-Type`, and of its answer, from `Accept`.

Answers are JSON or YAML. Bodies may also be protobuf, which Go clients send for built-in kinds. A clause of
`Accept` may ask for another representation of the answer, as kubectl does for its tables:
`application/json;as=Table;v=v1;g=meta.k8s.io`. Results are cached, since clients repeat the same few headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from podling.model.errors import GenericError, not_acceptable, unsupported_media_type
from podling.model.remembered import remembered

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAM = "application/json;stream=watch"
SERVED = (JSON, YAML)
READ = (JSON, YAML, PROTOBUF)
ANY = "*/*"
META = "meta.k8s.io"


OBJECT_SHAPES = frozenset(
    (kind, META, version)
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    for version in ("v1", "v1beta1")
)
METADATA_SHAPES = frozenset(shape for shape in OBJECT_SHAPES if shape[0] != "Table")


class Wanted(NamedTuple):
    """The media type of the answer, and the kind to show it as, such as Table; empty for the object
    itself."""

    media_type: str = JSON
    kind: str = ""
    group: str = ""
    version: str = ""


@remembered(1024)
def negotiate(
    accept: str, shapes: frozenset[tuple[str, str, str]] = frozenset(), streams: bool = False
) -> Wanted:
    """The first clause of `accept` that can be served, in descending order of quality (`q`).

    `shapes`: the (kind, group, version) that the endpoint can show its answer as. `streams`: whether it can
    be watched. Raises StatusError 406.
    """
    if not accept:
        return Wanted()
    for media_range, parameters in _clauses(accept):
        known = media_range if media_range in SERVED else ""
        if media_range == ANY:
            known = JSON
        wanted = Wanted(known, parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", ""))
        if known and (not wanted.kind or wanted[1:] in shapes):
            return wanted if wanted.kind else Wanted(known)
    if not any(media_range in (*SERVED, ANY) for media_range, _ in _clauses(accept)):
        served = (*SERVED, STREAM) if streams else SERVED
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(served)}"
        raise GenericError(406, "NotAcceptable", message)
    raise not_acceptable(SERVED)


@remembered(256)
def body_format(content_type: str) -> str:
    """One of READ; JSON if there is no `Content-Type`. Raises StatusError 415."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    if media_type not in READ:
        raise unsupported_media_type(READ)
    return media_type


def _clauses(accept: str) -> Iterator[tuple[str, dict[str, str]]]:
    clauses = []
    for clause in accept.split(","):
        media_range, *rest = (part.strip() for part in clause.split(";"))
        parameters = {
            key.lower(): value.strip('"') for key, _, value in (part.partition("=") for part in rest)
        }
        clauses.append((media_range.lower(), parameters))
    clauses.sort(key=lambda clause: -_quality(clause[1]))
    yield from (clause for clause in clauses if _quality(clause[1]) > 0)


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
