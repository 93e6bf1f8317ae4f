"""Who is asking: client certificates and bearer tokens, turned into a user."""
