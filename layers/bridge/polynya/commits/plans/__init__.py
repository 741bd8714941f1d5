"""What a commit will change, found out before the transaction that writes."""
