"""Validation of volumes."""
