"""dpmm's MST, AIM and PrivBayes, told the public domain; its own discretisation is switched off.

dpmm has no row count of its own: it draws as many rows as the table has.
"""

from __future__ import annotations

import pandas as pd
from door import Job, run
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PIPELINES = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}
AIM_MODEL_MB = 80  # its own default for AIM, which the pipeline overwrites with "no limit"


def release(job: Job):
    """Fit and draw."""
    frame = pd.DataFrame(job.rows, columns=job.names)
    limit = {"max_model_size": AIM_MODEL_MB} if job.mechanism == "aim" else {}
    pipeline = PIPELINES[job.mechanism](
        epsilon=job.epsilon, delta=job.delta, n_jobs=1, disable_processing=True, **limit
    )
    pipeline.fit(frame, domain=job.cells)
    return pipeline.generate(n_records=len(frame))[job.names].itertuples(index=False)


if __name__ == "__main__":
    run(release)
