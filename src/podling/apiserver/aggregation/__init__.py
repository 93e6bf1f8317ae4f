"""Other API servers behind this one: their groups are passed on to them, and told of as if they were here."""
