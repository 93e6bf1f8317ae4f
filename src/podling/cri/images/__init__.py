"""Image archives: read, built, pushed."""
