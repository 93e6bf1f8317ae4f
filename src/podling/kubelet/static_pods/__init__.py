"""Static pods: run from manifest files, also without an API server, and shown by mirror pods."""
