"""The metric that each sketch family estimates, by name, for readers that need no sketch."""

METRIC_OF_FAMILY = {
    "fast_similarity": "jaccard",
    "minhash": "jaccard",
    "bottom_k": "jaccard",
    "dart_minhash": "weighted_jaccard",
    "hyperplane": "cosine",
    "projection": "euclidean",
}
