"""What the runtime is told of a pod: sandboxes and containers as CRI configurations. Pure."""
