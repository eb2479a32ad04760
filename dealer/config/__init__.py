"""Settings of the server, each declared once: options, `dealer config` and REFERENCE.md derive."""
