"""The data files of a table: their rows, columns, and those that a scan needs."""
