"""One module for each kind of page: its routes, and the report that they show."""
