"""Why the house can be believed: bytes, commitments, the tree, signatures, and the verifier."""
