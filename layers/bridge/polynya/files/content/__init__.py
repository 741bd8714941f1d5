"""The content of virtual files, a module for each kind."""
