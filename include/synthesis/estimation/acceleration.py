"""Anderson acceleration in the geometry of the marginals."""

from __future__ import annotations

import numpy as np

from include.synthesis.estimation.measurement import FloatArray

MEMORY = 12
"""Steps remembered; more cost time and no longer save iterations."""
_RIDGE = 1e-4  # relative; old steps are nearly parallel once the fit has almost converged
_LEAST_RIDGE = 1e-300


class Acceleration:
    """The best combination of the last few steps.

    The loss is quadratic in the marginals, so its minimum over the affine span of the remembered
    marginals is a small linear system. The same combination of the log tables, followed by a
    mirror step along the gradient that the combination leaves, is the accelerated step.

    Args:
        size: number of factor cells.

    Source: Anderson 1965; Walker and Ni 2011, section 2 (with least squares in the norm of the
    loss instead of the Euclidean one).

    Privacy: post-processing.
    """

    def __init__(self, size: int) -> None:
        self._thetas = np.zeros((MEMORY, size))
        self._marginals = np.zeros((MEMORY, size))
        self._gradients = np.zeros((MEMORY, size))
        self._stored = 0

    @property
    def ready(self) -> bool:
        """Whether there is anything to combine."""
        return self._stored > 1

    def forget(self) -> None:
        """Start over, after a step that failed."""
        self._stored = 0

    def remember(self, move: FloatArray, marginals: FloatArray, gradient: FloatArray) -> None:
        """Keep a successful step.

        Args:
            move: change of the log tables, float64, shape (size,).
            marginals: change of the factor marginals.
            gradient: change of the gradient.
        """
        row = self._stored % MEMORY
        self._thetas[row], self._marginals[row], self._gradients[row] = move, marginals, gradient
        self._stored += 1

    def move(self, gradient: FloatArray, step: float) -> FloatArray:
        """Propose a step.

        Args:
            gradient: at the present point, float64, shape (size,).
            step: length of the mirror step.

        Returns:
            Change of the log tables, shape (size,).
        """
        rows = min(self._stored, MEMORY)
        marginals, gradients = self._marginals[:rows], self._gradients[:rows]
        gram = marginals @ gradients.T
        gram.flat[:: rows + 1] += _RIDGE * gram.trace() + _LEAST_RIDGE
        weights = np.linalg.solve(gram, marginals @ gradient)
        left = gradient - weights @ gradients
        move: FloatArray = -(weights @ self._thetas[:rows]) - step * left
        return move
