"""The runtime handler of a pod, from its RuntimeClass."""

from __future__ import annotations

from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.model.types.runtime_class import RuntimeClass

DEFAULT_HANDLER = ""


async def runtime_handler(client: Client, pod: Pod) -> str:
    """The RuntimeClass's handler, "" without one. Raises StatusError (404 if the RuntimeClass does not exist)
    or OSError."""
    name = pod.spec.runtime_class_name
    if not name:
        return DEFAULT_HANDLER
    try:
        return (await client.get(RuntimeClass, name)).handler
    except StatusError as error:
        if error.code != 404:
            raise
        message = f'failed to get sandbox runtime: RuntimeClass.node.k8s.io "{name}" not found'
        raise StatusError(error.code, error.reason, message) from error
