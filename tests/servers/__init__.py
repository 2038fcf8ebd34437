"""PostgreSQL servers that the tests start: their programs, by major version, and a fresh database per test."""
