"""Tools of `make build` and `make package`, and a reader of template.yaml; for checkouts only."""
