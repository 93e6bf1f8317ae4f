"""The kubelet's own server: logs, exec, attach and port-forward."""
