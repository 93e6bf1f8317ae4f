"""May they: authorizers, asked in order."""
