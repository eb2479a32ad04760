"""Webhooks: the feed sent to an address of a service, signed, in the order of each table."""
