"""The connection to PostgreSQL: sockets, credentials, transactions, batches of statements."""
