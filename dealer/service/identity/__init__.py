"""Who may act: players by tokens and tickets, services by their keys, operators."""
