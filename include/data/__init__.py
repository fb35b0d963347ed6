"""Tables: declared schema, snapshots, encoding, and counts that only a spending step may read."""
