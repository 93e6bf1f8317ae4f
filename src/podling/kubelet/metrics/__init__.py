"""The kubelet's numbers in Prometheus' text format, under the names Kubernetes gives them."""
