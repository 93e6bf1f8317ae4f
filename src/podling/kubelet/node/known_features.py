"""What the runtime can do, asked when somebody first needs to know; another may serve the socket once it was
away."""

from __future__ import annotations

from podling.cri.interface import Runtime, RuntimeFeatures


class KnownFeatures:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: RuntimeFeatures | None = None

    async def get(self) -> RuntimeFeatures:
        """Raises RuntimeFault."""
        if self._known is None:
            self._known = await self._runtime.features()
        return self._known

    def forget(self) -> None:
        self._known = None
