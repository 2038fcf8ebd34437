-- Visibility for index-only scans, statistics for the planner.
VACUUM (ANALYZE) {leaf}
