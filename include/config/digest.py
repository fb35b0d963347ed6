"""A digest that changes exactly when the declared content changes."""

from __future__ import annotations

import hashlib
import json

from pydantic import BaseModel


def config_digest(model: BaseModel) -> str:
    """Return the SHA-256 of a model's canonical JSON.

    Args:
        model: any configuration model.

    Returns:
        64 hexadecimal digits; comments, key order and formatting of the YAML do not count.

    Privacy: ledger only (declared text, no rows).
    """
    canonical = json.dumps(
        model.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(canonical.encode()).hexdigest()
