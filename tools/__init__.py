"""Commands around the product: the demonstration, the local UI, the standalone verifier."""
