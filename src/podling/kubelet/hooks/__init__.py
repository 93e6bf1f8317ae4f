"""Lifecycle hooks: what containers are told to do after their start and before their stop."""
