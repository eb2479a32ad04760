"""What operators do: close, archive, back up, check and restore; readiness; webhooks."""
