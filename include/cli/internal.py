"""`internal-evaluation`: exact figures, for public or consented data only."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from include.budget.reader import LedgerReader
from include.cli.answer import Answer, table
from include.errors import CuSynError
from include.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


def evaluate(args: argparse.Namespace, settings: Settings, reader: LedgerReader) -> Answer:
    """Compare a synthetic table with its public original, exactly.

    The dataset must be declared `public_data: true`, and neither it nor its population may be
    registered in the ledger: exact figures about protected people must not exist.

    Raises:
        CuSynError: the data are protected or not declared public, or a table cannot be read.

    Privacy: reads raw data (public or consented data only).
    """
    from include.config.loader import load_dataset
    from include.data.loaders import read_source
    from include.quality.internal import internal_evaluation, refuse_protected

    dataset = load_dataset(args.dataset, settings.config_dir)
    pools = reader.pools()
    registered = {pool.dataset for pool in pools if pool.dataset}
    populations = {pool.owner for pool in pools if pool.kind == "dataset"}
    refuse_protected(dataset, registered, populations, dataset.public_data)

    import pyarrow as pa

    original = pa.concat_tables(read_source(dataset, settings.project_root).chunks).to_pandas()
    found = internal_evaluation(
        dataset,
        original,
        _read(Path(args.synthetic)),
        registered_datasets=registered,
        registered_populations=populations,
        declared_public=dataset.public_data,
    )
    rows = [(" x ".join(one.clique), f"{one.tv:.4f}") for one in (*found.columns, *found.pairs)]
    text = table(["marginal", "exact total variation"], rows, empty="no column")
    return Answer(
        found.to_dict(),
        f"{text}\n\nmean over pairs: {found.mean_pair_tv:.4f}. Internal: not for publication.",
    )


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as fault:
        raise CuSynError(
            f"{path}: the synthetic table cannot be read ({type(fault).__name__}); name the "
            "data.parquet of a package"
        ) from None
