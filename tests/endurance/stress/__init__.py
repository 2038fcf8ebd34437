"""Writers and workers on a live index that are killed; then a comparison with a fresh build."""
