"""Connections to the node of an object, or to what runs there: log, exec, attach, portforward, proxy.

Behind the gate ExecEphemeralContainer (R-DBG-2), exec can first create the container that it connects to:
`exec?ephemeralContainerName=N&ephemeralContainerImage=I&command=...`. The API server adds an ephemeral
container to the pod, waits until the kubelet has started it, and turns the request into an attach to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from podling.apiserver.authz.authorizers import Decision, settled
from podling.apiserver.connect.http import parse_proxy_name, path_below
from podling.apiserver.kinds.kind import Connect, Part
from podling.apiserver.kinds.pods.ephemeral import is_free, take_name
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Query, flag
from podling.apiserver.request.response import Response
from podling.apiserver.rules.field import required
from podling.apiserver.verbs.members import put_in, until
from podling.apiserver.verbs.scope import Scope
from podling.model.errors import bad_request, forbidden, invalid
from podling.model.integers import parse_uint
from podling.model.types.container import Capabilities, EphemeralContainer, SecurityContext
from podling.model.types.pod import Pod

NAME, IMAGE = "ephemeralContainerName", "ephemeralContainerImage"
CAPABILITIES = ("SYS_PTRACE", "SYS_ADMIN")
STREAMED = frozenset({"attach", "exec", "portforward"})
"""Subresources of pods by which their processes are reached."""
STREAMS = ("stdin", "stdout")
"""Those a terminal has; `stderr` is one with `stdout`."""
FLAGS = (*STREAMS, "stderr", "tty")
OPTIONS = (*FLAGS, "command", "container", "ports")
"""The parameters of a connection that admission is asked about."""
ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Waiting reasons of a container that is about to start."""
NEVER_BEGAN = "StartError"
"""The reason of a terminated container that never ran."""


async def connect(context: RequestContext, scope: Scope) -> Response:
    subresource, name = cast(Connect, scope.subresource), context.info.name
    if subresource.name in STREAMED and context.info.verb == "get":
        await check_may_stream(context, scope)
    if subresource.has_path:
        name = parse_proxy_name(name, scope.resource.plural.removesuffix("s")).name
    if not subresource.is_read:
        if "dryRun" in context.query:
            raise bad_request("dryRun is not supported")
        context = await admitted(context, scope, subresource)
    obj = scope.store.find(scope.namespace(context), name).object
    rules = subresource.container_rules
    if rules is not None and makes_container(context.query):
        if context.info.subresource == "attach":
            return await scope.connector(attach_again(context, obj), obj)
        return await exec_container(context, scope, obj, rules)
    return await scope.connector(context, obj)


async def check_may_stream(context: RequestContext, scope: Scope) -> None:
    """What is asked by GET, as a WebSocket is, acts on the pod as a POST does. Raises StatusError 403."""
    asked = context.info._replace(verb="create")
    opinion = await settled(lambda: scope.reviewer.may(context.user, asked))
    if opinion.decision is not Decision.ALLOW:
        raise forbidden(scope.resource.plural, context.info.name, opinion.reason, scope.resource.group)


async def admitted(context: RequestContext, scope: Scope, subresource: Connect) -> RequestContext:
    """The request with the options that admission has made of its own. Raises StatusError."""
    below = path_below(context.request.path, context.info) if subresource.has_path else ""
    asked = connect_options(subresource.options, context.query, below)
    wanted = dict(asked)
    admission = scope.admission(context, "CONNECT")
    await admission.admit(wanted, None)
    await admission.validate(wanted, None)
    if wanted == asked:
        return context
    others = {name: values for name, values in context.query.items() if name not in OPTIONS}
    return msgspec.structs.replace(context, query={**others, **as_query(wanted)})


def connect_options(kind: str, query: Query, below: str) -> dict[str, Any]:
    """The options of a connection as an object of their kind."""
    found: dict[str, Any] = {"kind": kind, "apiVersion": "v1", "path": below}
    for name, values in query.items():
        if name in FLAGS:
            found[name] = flag(query, name)
        elif name == "ports":
            found[name] = [_port(port) for port in ",".join(values).split(",")]
        elif name in OPTIONS:
            found[name] = values if name == "command" else values[0]
    return {name: value for name, value in found.items() if value}


def _port(text: str) -> int:
    """Raises StatusError 400."""
    try:
        return parse_uint(text, 16)
    except ValueError as error:
        raise bad_request(f"cannot convert to []int32: {error}") from error


def as_query(options: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    return {
        name: [str(one) for one in value] if isinstance(value, list) else [str(value).lower()]
        if isinstance(value, bool) else [str(value)]
        for name, value in options.items()
        if name in OPTIONS
    }  # fmt: skip


def makes_container(query: Query) -> bool:
    return bool(_first(query, NAME) or _first(query, IMAGE))


async def exec_container(
    context: RequestContext, scope: Scope, pod: Pod, rules: Callable[[str], Part[Any]]
) -> Response:
    container = asked_container(pod, context.query)
    if not context.request.headers.get("Upgrade"):
        raise bad_request("Upgrade request required")
    if not pod.spec.node_name:
        raise bad_request(f"pod {pod.metadata.name} does not have a host assigned")
    name = container.name
    await put_in(
        context,
        scope,
        rules(name),
        lambda obj: take_name(obj, container),
        lambda obj: is_free(obj, name),
        dry_run=False,
    )
    started = await until(
        scope.store, scope.namespace(context), pod.metadata.name, lambda obj: has_begun(obj, name)
    )
    # Output from the container's start, which is a moment ago, and its exit code at the end.
    attach = msgspec.structs.replace(
        context,
        info=context.info._replace(subresource="attach"),
        query={**_streams(context.query, container), "replay": ("true",), "exitCode": ("true",)},
    )
    return await scope.connector(attach, started)


def attach_again(context: RequestContext, pod: Pod) -> RequestContext:
    """A request whose connection broke and that attaches again, `attach?ephemeralContainerName=N`, as a plain
    attach. Raises StatusError 400 if N is not an ephemeral container of the pod."""
    name = _first(context.query, NAME)
    container = next((one for one in pod.spec.ephemeral_containers if one.name == name), None)
    if container is None:
        raise bad_request(f"container {name} is not valid for pod {pod.metadata.name}")
    return msgspec.structs.replace(context, query=_streams(context.query, container))


def asked_container(pod: Pod, query: Query) -> EphemeralContainer:
    """The ephemeral container that the query describes. Raises StatusError 422 if name or image is
    missing."""
    for missing in (one for one in (NAME, IMAGE) if not _first(query, one)):
        cause = required(missing, f"{NAME} and {IMAGE} must be given together")
        raise invalid("PodExecOptions", pod.metadata.name, [cause])
    spec = pod.spec
    # The container whose processes the new one sees: the one named, or the only one of the pod; none if the
    # containers of the pod share their processes anyway.
    target = _first(query, "container") or (spec.containers[0].name if len(spec.containers) == 1 else "")
    if spec.share_process_namespace or spec.host_pid:
        target = ""
    return EphemeralContainer(
        name=_first(query, NAME),
        image=_first(query, IMAGE),
        command=list(query.get("command", ())),
        image_pull_policy="Always",
        security_context=SecurityContext(capabilities=Capabilities(add=list(CAPABILITIES))),
        # Whatever is asked: what is made to be debugged with can be attached to again and typed into.
        stdin=True,
        tty=True,
        target_container_name=target,
    )


def has_begun(pod: Pod, name: str) -> bool:
    """Whether the container runs or has ended; an ended one can be attached to, since its log and exit code
    are kept. Raises StatusError 400 for a container that cannot start by itself."""
    statuses = pod.status.ephemeral_container_statuses
    state = next((status.state for status in statuses if status.name == name), None)
    subject = f"container {name} in pod {pod.metadata.name}"
    if state is None:
        return False
    if state.terminated and state.terminated.reason == NEVER_BEGAN:
        raise bad_request(f"{subject} could not be started: {state.terminated.message}")
    if state.waiting and state.waiting.reason not in ON_ITS_WAY:
        why = f"{state.waiting.reason}: {state.waiting.message}"
        raise bad_request(f"{subject} is waiting to start: {why}")
    return state.running is not None or state.terminated is not None


def _streams(asked: Query, container: EphemeralContainer) -> dict[str, Any]:
    """Whether there is a terminal is the container's to say: it cannot be changed once that runs."""
    names = STREAMS if container.tty else (*STREAMS, "stderr")
    terminal = {"tty": ("true",)} if container.tty else {}
    return (
        {name: asked[name] for name in names if name in asked} | terminal | {"container": (container.name,)}
    )


def _first(query: Query, name: str) -> str:
    return query.get(name, ("",))[0]
