"""docs/evidence.md and its plots, made from the files under benchmarks/results alone."""
