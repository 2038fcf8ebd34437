"""Writers: records into JSON lines, JSON, CSV, TSV and Parquet, compressed or not."""
