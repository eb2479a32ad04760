"""Provable fairness: canonical bytes, commitments, Merkle tree, signed checkpoints, verifier."""
