"""What a lake has, and what changed in it, in pages."""
