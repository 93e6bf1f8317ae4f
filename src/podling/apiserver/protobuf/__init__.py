"""The protobuf forms of the API, for clients that insist on them."""
