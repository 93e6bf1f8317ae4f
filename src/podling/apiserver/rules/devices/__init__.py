"""Validation of the kinds of resource.k8s.io (`pkg/apis/resource/validation` of Kubernetes)."""
