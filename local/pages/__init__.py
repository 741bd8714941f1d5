"""The page that explains a lake to its owner: HTML and JSON of what `inspect` and `doctor` show."""
