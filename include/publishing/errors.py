"""What can go wrong between a finished package and its readers."""

from __future__ import annotations

from include.errors import CuSynError


class PublishError(CuSynError):
    """A package could not be written, published or checked.

    Privacy: post-processing.
    """


class DestinationUnavailableError(PublishError):
    """The destination did not answer or is full; the same call may succeed later.

    Privacy: post-processing.
    """

    retry_helps = True


class DestinationDeniedError(PublishError):
    """The destination refused these credentials or does not exist: a person must act.

    Privacy: post-processing.
    """


class DestinationConflictError(PublishError):
    """Something else is already published where this package belongs; it is never overwritten.

    Privacy: post-processing.
    """
