"""What is recorded of every request: the audit log and the metrics."""
