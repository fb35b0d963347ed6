"""`make bench-peers`: other makers of private tables beside ours."""
