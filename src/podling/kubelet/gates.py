"""The feature gates the planner asks about, with Kubernetes' or the seeds' defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gates:
    """`ephemeral_containers`: start new ones (R-EPH-8). `ephemeral_container_removal`: one removed from the
    spec is killed (R-EPH-11). `init_container_image_restart`: a changed init image runs them all again
    (R-INIT-4)."""

    ephemeral_containers: bool = True
    ephemeral_container_removal: bool = False
    init_container_image_restart: bool = True


DEFAULT_GATES = Gates()
