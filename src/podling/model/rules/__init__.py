"""What follows from an object by Kubernetes' rules: defaults, effective resources, quota, placement."""
