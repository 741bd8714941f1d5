"""How each client reads a table: the text to copy, and what is wrong with this client and table."""
