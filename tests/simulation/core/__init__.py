"""The core world: what is below the gateway, simulated without connections and clients."""
