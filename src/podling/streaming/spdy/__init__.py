"""SPDY/3.1 as Kubernetes speaks it: bytes in, events out."""
