"""Content negotiation: the format of a body, from `Content-Type`, and of its answer, from `Accept`.

Answers are JSON or YAML. Bodies may also be protobuf, which Go clients send for built-in kinds. A clause of
`Accept` may ask for another representation of the answer, as kubectl does for its tables:
`application/json;as=Table;v=v1;g=meta.k8s.io`. Results are cached, since clients repeat the same few headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podling.model.errors import GenericError, not_acceptable, unsupported_media_type
from podling.model.remembered import remembered

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TEXT = "text/plain"
SERVED = (JSON, YAML)
READ = (JSON, YAML, PROTOBUF)
ANY = "*/*"
META = "meta.k8s.io"
WATCHED = f"{JSON};stream=watch"
STREAMED = (*SERVED, WATCHED)
"""Offered by paths that can be watched."""


OBJECT_SHAPES = frozenset(
    (kind, META, version)
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    for version in ("v1", "v1beta1")
)
MOST_CLAUSES = 100
"""Of one `Accept`; what follows is not read, since each may have to be compared with all before it, before
anybody knows whose they are."""
METADATA_SHAPES = frozenset(shape for shape in OBJECT_SHAPES if shape[0] != "Table")

_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.ASCII | re.IGNORECASE
)


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'\s*+;\s*+({_TOKEN})\s*+=\s*+({_TOKEN}|"(?>(?:[^"\\\r\n]|\\.)*)")')
_PARAMETERS = re.compile(rf"(?>(?:{_PARAMETER.pattern})*)\s*+;?+\s*+")


class Wanted(NamedTuple):
    """The media type of the answer, and the kind to show it as, such as Table; empty for the object
    itself. `pretty`: indented."""

    media_type: str = JSON
    kind: str = ""
    group: str = ""
    version: str = ""
    pretty: bool = False


class Clause(NamedTuple):
    """One of `Accept`."""

    type: str
    subtype: str
    quality: float
    parameters: Mapping[str, str]

    def names(self, media_type: str) -> bool:
        type_, _, subtype = media_type.partition("/")
        return (self.type, self.subtype) in ((type_, subtype), (type_, "*"), ("*", "*"))

    def beats(self, other: Clause) -> bool:
        if self.quality > other.quality or (self.type != "*" and other.type == "*"):
            return True
        return self.subtype != "*" and other.subtype == "*"


@remembered(256)
def check_offered(accept: str, offered: Sequence[str]) -> None:
    """What go-restful, Kubernetes' router, asks of most paths before anything else: that `Accept` names one
    of the media types they have, letter by letter, whatever its parameters and quality. Raises StatusError
    406."""
    named = {clause.partition(";")[0].strip() for clause in accept.split(",")}
    if accept and named.isdisjoint((ANY, *offered)):
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
        raise GenericError(406, "NotAcceptable", message)


@remembered(256)
def check_sent(content_type: str, read: Sequence[str]) -> None:
    """What go-restful asks before that, also where no body is read: that `Content-Type`, if there is one,
    names one of the media types that are read. Raises StatusError 415."""
    named = {one.partition(";")[0].strip() for one in content_type.split(",")}
    if content_type and named.isdisjoint(read):
        raise GenericError(415, "UnsupportedMediaType", "415: Unsupported Media Type")


@remembered(1024)
def negotiate(accept: str, shapes: frozenset[tuple[str, str, str]] = frozenset()) -> Wanted:
    """The first clause of `accept` that can be served, as Kubernetes orders them. `shapes`: the
    (kind, group, version) that the endpoint can show its answer as. Raises StatusError 406."""
    found = _negotiated(accept, shapes)
    if found is None:
        raise not_acceptable(SERVED)
    return found


@remembered(1024)
def of_an_error(accept: str) -> Wanted | None:
    """As what a Status is shown; None where `Accept` says nothing that it can be."""
    return _negotiated(accept, frozenset())


@remembered(256)
def first_of(accept: str, offered: Sequence[str]) -> str:
    """The media type of these that the first clause names that names any, whatever its parameters; empty if
    none does."""
    if not accept:
        return offered[0]
    found = (one for clause in _clauses(accept) for one in offered if clause.names(one))
    return next(found, "")


def _negotiated(accept: str, shapes: frozenset[tuple[str, str, str]]) -> Wanted | None:
    if not accept:
        return Wanted()
    for clause in _clauses(accept):
        # Parameters that Kubernetes does not know say nothing.
        told = {"as": "", "g": "", "v": "", "stream": "", "sv": "", "pretty": "", **clause.parameters}
        shape = told["as"], told["g"], told["v"]
        # The version of meta.k8s.io, of what can be shown in that group.
        versions = ("", "v1") if shapes >= METADATA_SHAPES else ("",)
        if (any(shape) and shape not in shapes) or told["sv"] not in versions:
            continue
        for served in SERVED:
            streams = ("", "watch") if served == JSON else ("",)
            if clause.names(served) and told["stream"] in streams:
                return Wanted(served, *shape, told["pretty"] == "1")
    return None


@remembered(256)
def body_format(content_type: str) -> str:
    """One of READ; JSON if there is no `Content-Type`. Raises StatusError 415, also for parameters that are
    none."""
    if not content_type:
        return JSON
    media_type, semicolon, rest = content_type.partition(";")
    media_type, parameters = media_type.strip().lower(), semicolon + rest
    is_read = media_type in READ and _PARAMETERS.fullmatch(parameters) is not None
    told = {(name.lower(), value) for name, value in _PARAMETER.findall(parameters)} if is_read else set()
    # One may be said twice, but not to be two things.
    if not is_read or len(told) > len({name for name, _ in told}):
        raise unsupported_media_type(READ)
    return media_type


def _clauses(accept: str) -> Sequence[Clause]:
    """In the order of goautoneg, which Kubernetes negotiates with: it sorts by inserting each before those
    that it beats, by a higher quality or by naming what the other leaves open. A clause may beat one that
    beats it, so the order in the header counts, too. None is left out for a quality of 0."""
    ordered: list[Clause] = []
    for part in accept.split(",", MOST_CLAUSES)[:MOST_CLAUSES]:
        media_range, *rest = part.strip(" ").split(";")
        type_, *subtypes = (one.strip(" ") for one in media_range.split("/"))
        if len(subtypes) > 1 or (not subtypes and type_ != "*"):
            continue
        pairs = [one.split("=", 1) for one in rest if "=" in one]
        parameters = {name.strip(" "): value for name, value in pairs}
        quality = parameters.pop("q", "1")
        clause = Clause(
            type_,
            subtypes[0] if subtypes else "*",
            float(quality) if _NUMBER.fullmatch(quality) else 0,
            {name: value.strip(" ") for name, value in parameters.items()},
        )
        at = len(ordered)
        while at and clause.beats(ordered[at - 1]):
            at -= 1
        ordered.insert(at, clause)
    return ordered
