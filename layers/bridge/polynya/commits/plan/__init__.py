"""From a request to a plan: what can be determined before the transaction that writes."""
