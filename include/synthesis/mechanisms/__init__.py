"""The mechanisms, each behind the same plan -> measure -> fit -> sample."""
