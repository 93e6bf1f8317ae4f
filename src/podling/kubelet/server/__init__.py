"""The kubelet's HTTPS server: exec, attach, port-forward, logs, stats and metrics."""
