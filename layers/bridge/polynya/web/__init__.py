"""What the functions share of AWS's events and of HTTP."""
