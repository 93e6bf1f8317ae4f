"""Values of `--audit-log-mode` and `--audit-webhook-mode`."""

from __future__ import annotations

BATCH, BLOCKING, STRICT = MODES = ("batch", "blocking", "blocking-strict")
