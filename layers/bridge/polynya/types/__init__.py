"""The types: one record for each, grouped by family, from which every table of types is derived."""
