"""`/healthz`, `/livez` and `/readyz`: what is checked, and Kubernetes' way of saying it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podling.apiserver.context import RequestContext
from podling.apiserver.request import flag
from podling.apiserver.response import TEXT, Response

Checks = Mapping[str, Callable[[], bool]]


class HealthPaths:
    """`live` fails when only a restart helps; `ready` also fails while requests should go elsewhere."""

    def __init__(self, live: Checks, ready: Checks) -> None:
        self._checks = {"/healthz": live, "/livez": live, "/readyz": {**live, **ready}}

    def serve(self, context: RequestContext) -> Response | None:
        checks = self._checks.get(context.info.path.rstrip("/"))
        if checks is None:
            return None
        return report(context.info.path.strip("/"), checks, verbose=flag(context.query, "verbose"))


def report(name: str, checks: Checks, *, verbose: bool) -> Response:
    results = {check: passed() for check, passed in checks.items()}
    healthy = all(results.values())
    if healthy and not verbose:
        return Response(200, b"ok", TEXT)
    lines = [
        f"[+]{check} ok" if passed else f"[-]{check} failed: reason withheld"
        for check, passed in results.items()
    ]
    lines.append(f"{name} check {'passed' if healthy else 'failed'}\n")
    return Response(200 if healthy else 500, "\n".join(lines).encode(), TEXT)
