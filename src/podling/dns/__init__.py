"""Cluster DNS: a counterpart of CoreDNS, beside any API server."""
