"""All SQL that changes the catalog."""
