"""Stored objects: encoded, versioned, written through the storage and read from the watch cache."""
