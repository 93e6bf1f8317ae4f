"""Validation of one container."""
