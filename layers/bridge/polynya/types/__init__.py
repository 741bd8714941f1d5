"""The types: one record for each, by families, from which every table of types is derived."""
