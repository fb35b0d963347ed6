"""Options of the network mechanisms, as a release file names them."""

from __future__ import annotations

from include.synthesis.options import ESTIMATOR, MAX_MODEL_MB, Option

COMMON: dict[str, Option] = {
    "degree": Option(
        None, "most parents of an attribute, k; 3 by default", low=1, high=8, whole=True
    ),
    "public_rows": Option(
        None,
        "public row count that sizes the tables; without it a noisy count is paid for",
        low=1,
        high=1e9,
        whole=True,
    ),
    "count_share": Option(0.02, "share paid for that noisy count", low=0.001, high=0.5),
    "structure_share": Option(
        None, "share for the structure; 0.3 (laplace) or 0.1 (gaussian)", low=0.01, high=0.9
    ),
    "root_share": Option(0.05, "share for selecting the first attribute", low=0.001, high=0.5),
    "quantile_bins": Option(
        None, "bins a column gets by private quantiles of its declared cells", kind="counts"
    ),
    "bin_share": Option(
        None, "share for selecting their edges; 0.1 by default", low=0.001, high=0.5
    ),
    "usefulness": Option(
        4, "cells must hold so many times their noise on average", low=0.1, high=1000
    ),
    "noise": Option("laplace", "noise of the tables", choices=("laplace", "gaussian")),
    "fit": Option("network", "how rows are made from the tables", choices=("network", "pgm")),
    "max_model_mb": MAX_MODEL_MB,
    "estimator": ESTIMATOR,
}
PRIVBAYES: dict[str, Option] = {
    "root": Option("first", "the first attribute", choices=("first", "selected")),
    **COMMON,
}
CSA_PRIVBAYES: dict[str, Option] = {
    "sensitive": Option(None, "the sensitive attribute", kind="column"),
    "also_sensitive": Option(None, "further attributes of region A", kind="columns"),
    "root": Option("sensitive", "the first attribute", choices=("sensitive", "selected")),
    "force_sensitive_parent": Option(
        False, "the sensitive attribute is a parent of every other", kind="switch"
    ),
    "sensitive_weight": Option(
        None, "weight r of region A's tables, region B's being 1; 0.5 by default", low=0.01, high=1
    ),
    "regions": Option(
        "structure", "how region A is found", choices=("structure", "noisy_information")
    ),
    "region_share": Option(0.1, "share for noisy tables that find it", low=0.001, high=0.5),
    "theta": Option(
        None, "information (nats) from which an attribute is in region A", low=0, high=10
    ),
    **COMMON,
}
