"""The experiments of the CuSyn paper with correct accounting, and a downstream check."""
