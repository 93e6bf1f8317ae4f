"""Image archives: reading, building, loading and pushing them."""
