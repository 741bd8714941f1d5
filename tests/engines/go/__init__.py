"""iceberg-go, as a small program that `go build` makes."""
