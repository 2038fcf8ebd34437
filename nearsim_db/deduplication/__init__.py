"""De-duplication of files and of rows in memory, without a database."""
