"""Which messages a subscription lets through, beyond the tag hash of a ConsumeQueue unit."""
