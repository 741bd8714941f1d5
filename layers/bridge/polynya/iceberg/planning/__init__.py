"""Bodies of the requests of server-side scan planning, and the filters that they contain."""
