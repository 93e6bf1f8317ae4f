"""A sequence of requests, sent to both servers; their answers are compared field by field.

Each sequence has a namespace of its own, of the same name on both servers. `{ns}` in a target is that
namespace, also in a body; a string of either that begins with `$2.` is the value at that path of answer 2
(from 0), as the server at hand gave it, so that uids and versions can be sent back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec

from peer.masks import Masks
from peer.server import Answer, Asking, Server

COMPARED_HEADERS = ("Content-Type", "Warning", "Allow", "Retry-After")
OWN_WARNING = re.compile(r'(, )?299 - "podling has no [^"]*"')
"""Where podling keeps what it does not act on, it says so, and Kubernetes has nothing to say."""
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

STATUS_FOLLOWS = frozenset({"FlowSchema", "CustomResourceDefinition"})
"""Kinds whose objects the server writes once more after they are made: what is told is what came of it."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
LOOKS = 2_000
"""At what a server comes to by itself, until it has."""


class Ask(msgspec.Struct, frozen=True):
    """One request. A body is data, or bytes as they are. `what` is for people: what is tried. `until`: the
    code that it is repeated for, or the text in the answer, of what a server comes to by itself."""

    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = {}
    what: str = ""
    until: int | str = 0


class Compared(msgspec.Struct, frozen=True):
    """What is asked in a row. `name` is that of the test. `apart`: each answer is masked by itself, so that
    one that differs does not shift the numbers of those after it."""

    name: str
    asks: Sequence[Ask]
    apart: bool = False


class Asked(Protocol):
    """What is asked in a row, whatever else happens meanwhile."""

    @property
    def asks(self) -> Sequence[Ask]: ...


class Found(NamedTuple):
    """One difference: in which answer, at which path of it, and what either said."""

    step: int
    path: str
    kubernetes: Any
    podling: Any


class Missing:
    """In place of a field that one of the two does not have."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


def differences(compared: Compared, namespace: str, kubernetes: Server, podling: Server) -> list[Found]:
    with ThreadPoolExecutor(2) as both:
        theirs, ours = both.map(partial(_answers, compared, namespace), (kubernetes, podling))
    return [
        Found(step, path, their, our)
        for step, (one, other) in enumerate(zip(theirs, ours, strict=True))
        for path, their, our in unlike(*_told(one, other), "")
    ]


DECIDED = "answer"
"""The path of a difference in whether a request is refused, which no named difference may have."""


def _told(theirs: Any, ours: Any) -> tuple[Any, Any]:
    """Both answers; if one is an error and the other is none, only what they say, for people to read."""
    if (theirs["code"] < 400) == (ours["code"] < 400):
        return theirs, ours
    bodies = [one["body"] or "" for one in (theirs, ours)]
    messages = [body if isinstance(body, str) else body.get("message", "") for body in bodies]
    said = [f"{one['code']} {message}" for one, message in zip((theirs, ours), messages, strict=True)]
    return {DECIDED: said[0]}, {DECIDED: said[1]}


def shown(compared: Asked, found: Sequence[Found]) -> str:
    """For people: each request that was answered differently, and in what."""
    lines = []
    for step, ask in enumerate(compared.asks):
        here = [one for one in found if one.step == step]
        if here:
            lines.append(f"{step} {ask.method} {ask.target} {ask.headers or ''} {ask.what}")
            lines += [
                f"    {one.path}\n      kubernetes {one.kubernetes!r}\n      podling    {one.podling!r}"
                for one in here
            ]
    lines += [
        f"    {one.path}\n      {one.kubernetes!r}\n      {one.podling!r}"
        for one in found
        if one.step >= len(compared.asks)
    ]
    return "\n".join(lines)


def _answers(compared: Compared, namespace: str, server: Server) -> list[Any]:
    """What the server said, masked, each as plain data."""
    said: list[Answer] = []
    with server.asking() as asking:
        make_namespace(asking, namespace)
        for ask in compared.asks:
            target, made = _filled(ask.target, said, namespace), answer_of(asking, ask, namespace, said)
            for _ in range(LOOKS if ask.until else 0):
                if ask.until == made.code or (isinstance(ask.until, str) and ask.until in str(made.body)):
                    break
                made = answer_of(asking, ask, namespace, said)
            said.append(_settled(asking, ask.method, target, made))
    masks = Masks()
    return [plain(answer, number, Masks() if compared.apart else masks) for number, answer in enumerate(said)]


def answer_of(asking: Asking, ask: Ask, namespace: str, said: Sequence[Answer]) -> Answer:
    """`said`: the answers before, which what is sent may name."""
    target, body = (_filled(part, said, namespace) for part in (ask.target, ask.body))
    return asking.ask(ask.method, target, body, **ask.headers)


def _settled(asking: Asking, method: str, target: str, made: Answer) -> Answer:
    """The answer with the object as it is once the server has written the status that all such objects
    have."""
    if "dryRun" in target:
        return made
    if method == "DELETE" and target.startswith(DEFINITIONS):
        _until_gone(asking)
    if made.code == 200 and method in ("PATCH", "PUT"):
        _until_cached(asking, target, made)
    if made.code != 201 or made.body.get("kind") not in STATUS_FOLLOWS:
        return made
    name = made.body["metadata"]["name"]
    items = target.partition("?")[0].removesuffix(f"/{name}")
    for found in asking.watch(f"{items}?watch=true&fieldSelector=metadata.name%3D{name}"):
        conditions = found.get("status", {}).get("conditions")
        if conditions and all(one["reason"] != "Installing" for one in conditions):
            return made._replace(body=found)
    raise AssertionError(f"{name} has no status")


def _until_cached(asking: Asking, target: str, made: Answer) -> None:
    """Kubernetes tries the next change on what its cache has, and warnings about that stay said."""
    match made.body:
        case {"metadata": {"name": str(name), "resourceVersion": str(version)}}:
            items, found, _ = target.partition("?")[0].rpartition(f"/{name}")
            if found:
                asking.ask("GET", f"{items}/{name}?resourceVersion={version}")
        case _:
            pass


def _until_gone(asking: Asking) -> None:
    """Returns when the server has done with the definitions that were deleted: what holds them now is not its
    own."""
    for _ in range(LOOKS):
        items = asking.ask("GET", DEFINITIONS).body["items"]
        going = [one["metadata"] for one in items if "deletionTimestamp" in one["metadata"]]
        if not any(CLEANUP in one.get("finalizers", ()) for one in going):
            return
    raise AssertionError("definitions that were deleted stay")


def make_namespace(asking: Asking, namespace: str) -> None:
    """With what the controllers of a whole cluster would put there."""
    asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    asking.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})


def plain(answer: Answer, number: int, masks: Masks) -> Any:
    headers = {name: answer.headers[name] for name in COMPARED_HEADERS if name in answer.headers}
    if told := OWN_WARNING.sub("", headers.pop("Warning", "")).removeprefix(", "):
        headers["Warning"] = told
    return {"code": answer.code, "headers": headers, "body": masks.answer(number, answer.body)}


def _filled(sent: Any, said: Sequence[Answer], namespace: str) -> Any:
    if isinstance(sent, str):
        named = sent.replace("{ns}", namespace)
        return re.sub(r"\$(\d+)\.([\w.]+)", lambda found: str(_at(said[int(found[1])].body, found[2])), named)
    if isinstance(sent, bytes):
        return _filled(sent.decode("latin-1"), said, namespace).encode("latin-1")
    if isinstance(sent, list):
        return [_filled(one, said, namespace) for one in sent]
    if isinstance(sent, dict):
        return {key: _filled(value, said, namespace) for key, value in sent.items()}
    return sent


def _at(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body[int(name)] if isinstance(body, list) else body[name]
    return body


def unlike(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            yield from unlike(
                theirs.get(name, MISSING), ours.get(name, MISSING), f"{path}.{name}" if path else name
            )
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from unlike(one, other, f"{path}[{index}]")
    elif type(theirs) is not type(ours) or theirs != ours:
        yield path, theirs, ours
