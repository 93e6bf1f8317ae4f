"""Turns a pod into the CRI's messages: sandbox, container, environment, security context."""
