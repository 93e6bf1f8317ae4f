"""Startup, liveness and readiness probes: what they ask (`check.py`), when, and what follows."""
