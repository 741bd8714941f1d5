"""Reports on a lake and its tables, for `polynya doctor`, `polynya inspect` and the page."""
