"""Container logs: their format, reading and rotation."""
