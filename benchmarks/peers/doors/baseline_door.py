"""The floor: real rows drawn with replacement. Not private, and no mechanism can do better."""

from __future__ import annotations

import random  # noqa: TID251 - draws real rows, no noise

from door import Job, run


def release(job: Job):
    """Draw as many rows as the table has."""
    return random.choices(job.rows, k=len(job.rows))


if __name__ == "__main__":
    run(release)
