"""The types of Spark, Arrow and DuckLake, and conversions between them."""
