"""Who debugged which pod, when, with which image and rights, and whether that was allowed: read from the
audit log, in which podling's own policy keeps enough.

An ephemeral container comes as a patch, in a whole pod, in a request of podling's own `pods/debug`, or with
an exec that makes one. A whole pod has those of before, too: what was allowed before in a pod of that name is
told of once, until the pod is made or deleted anew.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec

from podling.apiserver.observe.audit_policy import COMPLETE, STARTED
from podling.apiserver.observe.audit_rotation import PACKED, backups

PODS = b'"resource":"pods"'
WRITES = frozenset({"create", "update", "patch", "delete"})
CONNECTIONS = frozenset({"exec", "attach", "portforward"})
FAILED = 400
NOT_RECORDED = "(not recorded)"
BY_EXEC = {"capabilities": {"add": ["SYS_PTRACE", "SYS_ADMIN"]}}
"""The rights of a container that an exec makes."""
PROFILES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("sysadmin", {"privileged": True}),
    ("netadmin", {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}),
    ("general", {"capabilities": {"add": ["SYS_PTRACE"]}}),
)
"""What `kubectl debug --profile` makes of each profile that gives more than a container has anyway."""


class NoLogError(Exception):
    """There is no audit log to read."""


class Debugged(msgspec.Struct, rename="camel", omit_defaults=True):
    """One container with which a pod was debugged, or one connection into it."""

    time: str
    user: str
    namespace: str
    pod: str
    action: str
    container: str = ""
    image: str = ""
    target: str = ""
    command: list[str] = []
    security_context: dict[str, Any] = {}
    profile: str = ""
    code: int = 0
    allowed: bool = True
    dry_run: bool = False
    reason: str = ""
    """Why it was not allowed."""
    impersonated_user: str = ""
    source_ips: list[str] = msgspec.field(default_factory=list, name="sourceIPs")
    user_agent: str = ""
    audit_id: str = msgspec.field(default="", name="auditID")


def lines(log: Path) -> Iterator[bytes]:
    """The lines of the log at `log` and of those it was before it was rotated, oldest first. Raises
    NoLogError, OSError."""
    files = [*(backup.path for backup in sorted(backups(log))), log] if log.parent.is_dir() else []
    found = [file for file in files if file.is_file()]
    if not found:
        raise NoLogError(f"there is no audit log at {log}")
    for file in found:
        with gzip.open(file) if file.suffix == PACKED else file.open("rb") as opened:
            yield from opened


def debugged(events: Iterable[bytes], *, connections: bool = False) -> Iterator[Debugged]:
    """`connections`: whether to tell of exec, attach and port-forward, too. A line that is cut off, as the
    last one after a crash, is passed over."""
    known: dict[tuple[str, str], set[str]] = {}
    for line in events:
        if PODS not in line:
            continue
        try:
            event = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        goes_on = event["objectRef"].get("subresource") in CONNECTIONS
        if event["stage"] == (STARTED if goes_on else COMPLETE):
            yield from _told(event, known, connections=connections)


def _told(
    event: Mapping[str, Any], known: dict[tuple[str, str], set[str]], *, connections: bool
) -> Iterator[Debugged]:
    reference, verb = event["objectRef"], event["verb"]
    pod = reference.get("namespace", ""), reference.get("name", "")
    subresource = reference.get("subresource", "")
    failed = event["responseStatus"]["code"] >= FAILED
    if not subresource:
        if verb in ("create", "delete") and not failed:
            known.pop(pod, None)
        return
    query = parse_qs(event["requestURI"].partition("?")[2])
    if subresource == "ephemeralcontainers" and verb in WRITES:
        containers = [one for one in _sent(event.get("requestObject")) if one.get("image")]
        new = [one for one in containers if one.get("name") not in known.get(pod, ())]
        if not failed and "dryRun" not in query:
            known.setdefault(pod, set()).update(one.get("name", "") for one in new)
        if "requestObject" not in event:
            new = [{"image": NOT_RECORDED}]
        for container in new:
            yield _row(event, "debug", container, query)
    elif subresource == "debug" and verb in ("create", "delete"):
        sent = event.get("requestObject", {"image": NOT_RECORDED})
        container = {
            **sent.get("spec", sent),
            "name": event["requestURI"].partition("?")[0].rpartition("/")[2],
        }
        yield _row(event, "debug" if verb == "create" else "remove", container, query)
    elif subresource == "exec" and "ephemeralContainerName" in query:
        container = {
            "name": query["ephemeralContainerName"][0],
            "image": query.get("ephemeralContainerImage", [""])[0],
            "targetContainerName": query.get("container", [""])[0],
            "command": query.get("command", []),
            "securityContext": BY_EXEC,
        }
        yield _row(event, "debug", container, query)
    elif connections and subresource in CONNECTIONS:
        container = {"name": query.get("container", [""])[0], "command": query.get("command", [])}
        yield _row(event, subresource, container, query)


def _sent(body: Any) -> Iterator[dict[str, Any]]:
    """The ephemeral containers in a pod, or in any patch of one."""
    if isinstance(body, list):
        for step in body:
            if isinstance(step, dict) and str(step.get("path", "")).startswith("/spec/ephemeralContainers"):
                value = step.get("value")
                yield from (
                    one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)
                )
    elif isinstance(body, dict) and isinstance(spec := body.get("spec"), dict):
        yield from (one for one in spec.get("ephemeralContainers") or () if isinstance(one, dict))


def _row(
    event: Mapping[str, Any], action: str, container: Mapping[str, Any], query: Mapping[str, Any]
) -> Debugged:
    reference, status = event["objectRef"], event["responseStatus"]
    rights = container.get("securityContext") or {}
    allowed = status["code"] < FAILED
    return Debugged(
        time=event["requestReceivedTimestamp"],
        user=event["user"].get("username", ""),
        namespace=reference.get("namespace", ""),
        pod=reference.get("name", ""),
        action=action,
        container=container.get("name", ""),
        image=container.get("image", ""),
        target=container.get("targetContainerName", ""),
        command=[*(container.get("command") or ()), *(container.get("args") or ())],
        security_context=rights,
        profile=profile_of(rights) if action == "debug" else "",
        code=status["code"],
        allowed=allowed,
        dry_run="dryRun" in query,
        reason="" if allowed else status.get("message") or status.get("reason", ""),
        impersonated_user=event.get("impersonatedUser", {}).get("username", ""),
        source_ips=event.get("sourceIPs", []),
        user_agent=event.get("userAgent", ""),
        audit_id=event["auditID"],
    )


def profile_of(rights: Mapping[str, Any]) -> str:
    """The profile of `kubectl debug` that gives these rights; kubectl does not send its name. Empty if none
    does, or several do."""
    return next((name for name, given in PROFILES if given == rights), "")


def rights_of(rights: Mapping[str, Any]) -> str:
    """`privileged`, `+SYS_PTRACE`, `-ALL`, `runAsUser=0`; `default` for none."""
    capabilities = rights.get("capabilities") or {}
    told = ["privileged"] if rights.get("privileged") else []
    told += [f"+{name}" for name in capabilities.get("add") or ()]
    told += [f"-{name}" for name in capabilities.get("drop") or ()]
    for name, value in rights.items():
        if name not in ("privileged", "capabilities"):
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            told.append(f"{name}={text}")
    return ",".join(told) or "default"
