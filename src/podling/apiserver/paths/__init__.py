"""Paths that are not resources: discovery, OpenAPI, health, the index."""
