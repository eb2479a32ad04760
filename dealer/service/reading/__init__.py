"""What is read of tables: bundles, checkpoints, proofs, past states, and the open public tables."""
