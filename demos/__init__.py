"""Demos for developers, which need a checkout; `polynya demo` is the users'."""
