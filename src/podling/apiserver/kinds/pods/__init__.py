"""The Pod kind: what may be created, updated, resized, debugged, and how it is listed."""
