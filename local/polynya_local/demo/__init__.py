"""`polynya demo` and `make pipeline-demo`."""
