"""Questions to a user at a terminal: which pod, which session. They are asked on standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podling.cli.tables import aligned

if TYPE_CHECKING:
    from podling.debug.sessions import DebugSession
    from podling.model.types.pod import Pod


async def chosen_pod(pods: Sequence[Pod]) -> Pod:
    """By its number or a part of its name. Raises WishError when there is none, or no answer."""
    from podling.debug.container import WishError
    from podling.remote import keyboard

    if not pods:
        raise WishError("there are no pods here: name another namespace with -n")
    numbers = {pod.metadata.name: str(number) for number, pod in enumerate(pods, 1)}
    left = pods
    while len(left) != 1:
        rows = [[numbers[pod.metadata.name], pod.metadata.name, pod.status.phase] for pod in left or pods]
        _say("\n".join(aligned(rows)))
        answer = await keyboard.asked("Which pod? Its number or a part of its name: ")
        if not answer:
            raise WishError("which pod? Give its name: podling debug POD")
        left = [pod for pod in pods if answer in (numbers[pod.metadata.name], pod.metadata.name)]
        left = left or [pod for pod in pods if answer in pod.metadata.name]
    return left[0]


async def chosen_session(running: Sequence[DebugSession]) -> str:
    """The name of the container to attach to; empty for a new one."""
    from podling.model.time import SystemClock
    from podling.remote import keyboard

    now = SystemClock().now()
    rows = [
        [str(number), one.container, one.image, one.by, one.age(now)] for number, one in enumerate(running, 1)
    ]
    _say("\n".join(["Sessions that run in this pod:", *aligned(rows)]))
    while True:
        answer = await keyboard.asked("Attach to which? Its number or name, Enter for 1, n for a new one: ")
        if answer in ("n", "new", None):
            return ""
        for number, one in enumerate(running, 1):
            if answer in (str(number), one.container) or (not answer and number == 1):
                return one.container


def _say(text: str) -> None:
    click.echo(text, err=True)
