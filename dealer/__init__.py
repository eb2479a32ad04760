"""A card dealer that runs as a service and that players can check."""
