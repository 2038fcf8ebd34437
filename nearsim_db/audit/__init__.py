"""Does an index agree with its documents: checked against them, told, and repaired."""
