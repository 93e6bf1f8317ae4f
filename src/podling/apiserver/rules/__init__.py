"""Validation, pure: from a value and its path to the faults that Kubernetes would name."""
