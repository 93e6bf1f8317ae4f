"""What OpenAPI says in words of operations, by their verbs, and of their parameters, by their names."""

from __future__ import annotations

from collections.abc import Mapping

VERBS: Mapping[str, str] = {
    "get": "Read {what}.",
    "list": "List objects of kind {kind}, or watch them.",
    "create": "Create {what}.",
    "update": "Replace {what}.",
    "patch": "Change parts of {what}.",
    "delete": "Delete {what}.",
    "deletecollection": "Delete all objects of kind {kind} that the query selects.",
    "watch": "Watch the {kind}. Deprecated: use the parameter watch of a list, with a field selector.",
    "watchlist": "Watch objects of kind {kind}. Deprecated: use the parameter watch of a list.",
}
PARAMETERS: Mapping[str, str] = {
    "allowWatchBookmarks": "Whether a watch is told now and then how far it has come, without a change.",
    "command": "The program to run, and its arguments: one each time the parameter is given.",
    "container": "The container of the pod that is meant. Needed where the pod has several.",
    "continue": "Where a list that came in pieces goes on: what the piece before it ended with.",
    "dryRun": "With All the request is judged and answered as ever, and nothing is stored.",
    "fieldManager": "Who is recorded to manage the fields that are written. Required of an apply.",
    "fieldSelector": "Only objects whose fields are as it says, such as metadata.name=a.",
    "fieldValidation": "What becomes of fields that are unknown or given twice: Ignore, Warn or Strict.",
    "follow": "Whether the answer goes on while the container writes.",
    "force": "Whether an apply takes over fields that others manage.",
    "gracePeriodSeconds": "Seconds an object has to end, 0 for none. Its own grace period by default.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": (
        "Whether an object goes that cannot be read from the storage, without regard for what it holds."
    ),
    "insecureSkipTLSVerifyBackend": "Whether the kubelet is believed whatever certificate it shows.",
    "labelSelector": "Only objects whose labels are as it says, such as app=web,tier!=back.",
    "limit": "At most so many objects; the rest is there to be asked for with continue.",
    "limitBytes": "At most so many bytes of the log.",
    "member": "The name of one of its members.",
    "name": "The name of the {kind}.",
    "namespace": "The namespace that the object is in.",
    "orphanDependents": "Whether what belongs to the object stays. Deprecated: use propagationPolicy.",
    "path": "The path of the request that is passed on.",
    "ports": "The port of the pod to forward to.",
    "pretty": "Whether the answer is indented for people.",
    "previous": "Whether the log is that of the container before it was restarted.",
    "propagationPolicy": "What becomes of what belongs to the object: Orphan, Background or Foreground.",
    "resourceVersion": "The version of the collection to read at or to watch from.",
    "resourceVersionMatch": "How resourceVersion is meant: Exact or NotOlderThan.",
    "sendInitialEvents": "Whether a watch begins with the objects that are there and a bookmark.",
    "shardSelector": "Only the objects of one shard.",
    "sinceSeconds": "Only what was logged in the last so many seconds.",
    "stderr": "Whether the standard error comes back.",
    "stdin": "Whether the standard input is sent.",
    "stdout": "Whether the standard output comes back.",
    "stream": "Which output of the container: All, Stdout or Stderr.",
    "tailLines": "At most so many lines, from the end of the log.",
    "timeoutSeconds": "Seconds after which a list or a watch ends.",
    "timestamps": "Whether each line begins with its time.",
    "tty": "Whether the container's process has a terminal.",
    "watch": "Whether changes are told as they happen, instead of a list.",
}


def of_verb(verb: str, kind: str, part: str = "") -> str:
    """What a verb does to an object of a kind, or to a subresource of it."""
    article = "an" if verb == "create" and kind[0] in "AEIO" else "a" if verb == "create" else "the"
    what = f"{article} {kind}" if not part else f"{part} of the {kind}"
    return VERBS[verb].format(kind=kind, what=what)


def of_connection(method: str, part: str, kind: str) -> str:
    return f"Pass a {method.upper()} request on to {part} of the {kind}."


def of_parameter(name: str, kind: str = "") -> str:
    """`kind` is that of the object which a path names."""
    return PARAMETERS[name].format(kind=kind)
