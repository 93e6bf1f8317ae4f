"""What a write is changed into or refused for before validation."""
