"""The page about a lake that `polynya serve` shows to people."""
