"""Images: what is pulled when, with whose credentials."""
