"""Whether a user may do what a request asks for: authorizers, asked in order, and impersonation."""
