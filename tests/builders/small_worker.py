"""`nearsim worker` with small batches and slices: python -m tests.builders.small_worker worker [OPTIONS]."""

from nearsim_db.cli import main
from tests.builders.killed_ingest import make_batches_small

if __name__ == "__main__":
    make_batches_small()
    main()
