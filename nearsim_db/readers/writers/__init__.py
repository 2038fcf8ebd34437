"""Writers: they write records as JSON lines, JSON, CSV, TSV and Parquet, compressed or not."""
