"""How bytes become types, and types bytes, as Go's encoder writes them."""
