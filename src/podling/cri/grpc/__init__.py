"""The client of a CRI v1 socket, over definitions compiled from the .proto files here."""
