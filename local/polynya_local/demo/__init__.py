"""`polynya demo`."""
