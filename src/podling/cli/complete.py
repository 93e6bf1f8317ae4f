"""What the shell offers while a command is typed: pods, containers, namespaces and contexts of the cluster
that the command is about. What cannot be asked is not offered; nothing is ever said about it.

For its plugin (`kubectl podling …`) kubectl runs `kubectl_complete-podling` with the words typed, the last of
them incomplete. The answer is a line for each word, and `:4`, which keeps the shell from offering files.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from podling.client.kubeconfig import Access
    from podling.remote.pods import Cluster

SECONDS = 2.0
"""What a shell waits for at most."""
NO_FILES = ":4"

Ask = Callable[["Cluster", str], Awaitable[list[str]]]


def pods(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster, namespace: str) -> list[str]:
        return [pod.metadata.name for pod in await cluster.all(namespace)]

    return _begin(_asked(context, names), incomplete)


def containers(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Of the pod that `-p` names: click has not read arguments while an option lacks its value."""
    pod = context.params.get("pod_option")
    if not pod:
        return []

    async def names(cluster: Cluster, namespace: str) -> list[str]:
        spec = (await cluster.get(namespace, pod)).spec
        listed = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
        return [container.name for container in listed]

    return _begin(_asked(context, names), incomplete)


def namespaces(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster, namespace: str) -> list[str]:
        return await cluster.namespaces()

    return _begin(_asked(context, names), incomplete)


def services(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster, namespace: str) -> list[str]:
        return await cluster.services(namespace)

    return _begin(_asked(context, names), incomplete)


def contexts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from podling.cli.cluster import kubeconfigs
    from podling.client import kubeconfig

    try:
        return _begin(kubeconfig.contexts(kubeconfigs(context.params.get("file"))), incomplete)
    except kubeconfig.KubeconfigError:
        return []


def _begin(words: list[str], incomplete: str) -> list[str]:
    return sorted({word for word in words if word.startswith(incomplete)})


def _asked(context: click.Context, ask: Ask) -> list[str]:
    import asyncio

    from podling.cli.cluster import kubeconfigs
    from podling.client import kubeconfig
    from podling.debug.container import WishError
    from podling.model.errors import StatusError
    from podling.remote.pods import Cluster

    async def answer(access: Access) -> list[str]:
        cluster = Cluster(access.transport())
        try:
            async with asyncio.timeout(SECONDS):
                return await ask(cluster, context.params.get("namespace") or access.namespace)
        finally:
            await cluster.close()

    try:
        files = kubeconfigs(context.params.get("file"))
        access = kubeconfig.read_merged(files, context.params.get("context") or "")
        return asyncio.run(answer(access))
    except (kubeconfig.KubeconfigError, StatusError, WishError, OSError):
        return []


def for_kubectl() -> None:
    """`kubectl_complete-podling WORD... INCOMPLETE`."""
    from click.shell_completion import ShellComplete

    from podling.cli.main import main

    *words, incomplete = sys.argv[1:] or [""]
    completing = ShellComplete(main, {}, "kubectl-podling", "")
    for item in completing.get_completions(words, incomplete):
        click.echo(item.value)
    click.echo(NO_FILES)
