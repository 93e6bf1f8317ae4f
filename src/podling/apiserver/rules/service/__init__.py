"""Defaults and validation of services."""
