"""Types of Spark, Arrow and DuckLake."""
