"""What all jobs use: options, errors, progress, Spark, the database, storage, columns, values."""
