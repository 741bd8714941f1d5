"""What `make build` and `make package` need: packages, wheels, the template."""
