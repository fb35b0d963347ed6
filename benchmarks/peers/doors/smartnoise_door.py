"""smartnoise-synth's MST, AIM and MWEM with their defaults, told the public domain.

Its label transformer learns the categories from the rows it is fitted on: here it is fitted on a
frame in which every code of the public domain stands, and never on the data. It draws its default
number of rows.
"""

from __future__ import annotations

import pandas as pd
from door import Job, run
from snsynth import Synthesizer, TableTransformer
from snsynth.transform import LabelTransformer


def release(job: Job):
    """Fit and draw."""
    frame = pd.DataFrame(job.rows, columns=job.names)
    delta = {} if job.mechanism == "mwem" else {"delta": job.delta}
    synthesizer = Synthesizer.create(job.mechanism, epsilon=job.epsilon, **delta)
    synthesizer.fit(frame, transformer=public_transformer(job))
    drawn = synthesizer.sample(len(frame))
    return pd.DataFrame(drawn, columns=job.names).astype(int).itertuples(index=False)


def public_transformer(job: Job) -> TableTransformer:
    """Fit the labels on the public domain."""
    longest = max(job.cells.values())
    public = pd.DataFrame(
        {name: [code % cells for code in range(longest)] for name, cells in job.cells.items()}
    )
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in job.names])
    transformer.fit(public)
    return transformer


if __name__ == "__main__":
    run(release)
