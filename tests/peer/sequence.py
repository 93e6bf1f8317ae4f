"""A sequence of requests, sent to both servers; their answers are compared field by field.

Each sequence has a namespace of its own, of the same name on both servers. `{ns}` in a target is that
namespace; a string of a body or a target that begins with `$2.` is the value at that path of answer 2 (from
0), as the server at hand gave it, so that uids and versions can be sent back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

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


class Ask(msgspec.Struct, frozen=True):
    """One request. A body is data, or bytes as they are. `what` is for people: what is tried."""

    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = {}
    what: str = ""


class Compared(msgspec.Struct, frozen=True):
    """What is asked in a row. `name` is that of the test. `apart`: each answer is masked by itself, so that
    one that differs does not shift the numbers of those after it."""

    name: str
    asks: Sequence[Ask]
    apart: bool = False


class Found(NamedTuple):
    """One difference: in which answer, at which path of it, and what either said."""

    step: int
    path: str
    kubernetes: Server
    podling: Server


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
        for path, their, our in _unlike(*_told(one, other), "")
    ]


def _told(theirs: Any, ours: Any) -> tuple[Any, Any]:
    """Both answers; if one is an error and the other is none, only what they say, for people to read."""
    if (theirs["code"] < 400) == (ours["code"] < 400):
        return theirs, ours
    brief = [
        {"code": one["code"], "body": {"message": one["body"].get("message", "")} if one["body"] else None}
        for one in (theirs, ours)
    ]
    return brief[0], brief[1]


def shown(compared: Compared, found: Sequence[Found]) -> str:
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
    return "\n".join(lines)


def _answers(compared: Compared, namespace: str, server: Server) -> list[Any]:
    """What the server said, masked, each as plain data."""
    said: list[Answer] = []
    with server.asking() as asking:
        make_namespace(asking, namespace)
        for ask in compared.asks:
            target = _filled(ask.target.replace("{ns}", namespace), said)
            said.append(asking.ask(ask.method, target, _filled(ask.body, said), **ask.headers))
    masks = Masks()
    return [_plain(answer, Masks() if compared.apart else masks) for answer in said]


def make_namespace(asking: Asking, namespace: str) -> None:
    """With what the controllers of a whole cluster would put there."""
    asking.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    asking.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})


def _plain(answer: Answer, masks: Masks) -> Any:
    headers = {name: answer.headers[name] for name in COMPARED_HEADERS if name in answer.headers}
    if told := OWN_WARNING.sub("", headers.pop("Warning", "")):
        headers["Warning"] = told
    return {"code": answer.code, "headers": headers, "body": masks.masked(answer.body)}


def _filled(sent: Any, said: Sequence[Answer]) -> Any:
    if isinstance(sent, str):
        return re.sub(r"\$(\d+)\.([\w.]+)", lambda found: str(_at(said[int(found[1])].body, found[2])), sent)
    if isinstance(sent, list):
        return [_filled(one, said) for one in sent]
    if isinstance(sent, dict):
        return {key: _filled(value, said) for key, value in sent.items()}
    return sent


def _at(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body[int(name)] if isinstance(body, list) else body[name]
    return body


def _unlike(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            yield from _unlike(
                theirs.get(name, MISSING), ours.get(name, MISSING), f"{path}.{name}" if path else name
            )
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from _unlike(one, other, f"{path}[{index}]")
    elif type(theirs) is not type(ours) or theirs != ours:
        yield path, theirs, ours
