"""Validation of a pod's spec beyond its containers and volumes."""
