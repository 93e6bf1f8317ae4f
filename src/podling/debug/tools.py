"""Images to debug with, by what they are for. A user's own list goes before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podling.debug.container import WishError

TOOLS: Mapping[str, str] = {
    "net": "nicolaka/netshoot",
    "jvm": "eclipse-temurin:21-jdk",
    "python": "python:3.13",
    "go": "golang:1.25",
    "perf": "ubuntu:24.04",
}
FILE = "podling/tools.yaml"
"""Below $XDG_CONFIG_HOME, else ~/.config: a mapping of names to images."""


def image_for(name: str, own: Mapping[str, Any]) -> str:
    """Raises WishError."""
    found = {**TOOLS, **own}
    image = found.get(name)
    if not isinstance(image, str):
        raise WishError(f'--tools: there is no image for "{name}": there are {", ".join(sorted(found))}')
    return image
