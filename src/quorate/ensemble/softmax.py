r"""The same for more than two classes: scikit-learn's multinomial loss, one score a class.

The objective is :math:`f(W, b) = \tfrac12 \|W\|^2 + C \sum_i (\log\sum_k e^{z_{ik}} - z_{i y_i})` with scores
:math:`z_{ik} = x_i \cdot w_k + b_k`. Adding one number to every intercept changes nothing; the intercepts given back
sum to zero, as scikit-learn's do.

With few unknowns the Hessian of all of them is factored. Else each :math:`w_k = X^\top a_k` is a combination of the
rows, and the step costs one n × n factor a class and one more (Rasmussen and Williams, 2006, Algorithm 3.3).
Everything said in :mod:`quorate.ensemble.newton` of stopping and of last bits holds here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.deferred import linalg
from quorate.ensemble.newton import Step

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray


def shares_and_loss(scores: FloatArray, y: IntArray) -> tuple[FloatArray, float]:
    """Return the classes' probabilities, ``(C, n_rows)``, and the sum of the negative log-likelihoods.

    `scores`: one row a class. `y`: class of each row.

    Examples
    --------
    >>> shares, loss = shares_and_loss(np.array([[0.0, 900.0], [0.0, 0.0]]), np.array([0, 1]))
    >>> shares.tolist(), round(loss - 900, 3)
    ([[0.5, 1.0], [0.5, 0.0]], 0.693)
    """
    largest = scores.max(axis=0)
    shares = np.exp(scores - largest)
    total = shares.sum(axis=0)
    loss = float((largest + np.log(total) - scores[y, np.arange(len(y))]).sum())
    return shares / total, loss


def _one_hot(y: IntArray, n_classes: int) -> FloatArray:
    target = np.zeros((n_classes, len(y)))
    target[y, np.arange(len(y))] = 1.0
    return target


class SoftmaxInColumns:
    """The objective of C classes in (W, b): for few unknowns.

    `X`: the shard. `y`: classes 0..C-1. `n_classes`: c. `C`: what the loss is multiplied by. `intercept`: whether b is
    fitted.
    """

    def __init__(self, X: FloatArray, y: IntArray, n_classes: int, C: float, *, intercept: bool) -> None:
        n, d = X.shape
        self._columns = np.empty((d + intercept, n))
        self._columns[:d] = X.T
        penalty = np.ones((n_classes, d + intercept))
        if intercept:
            self._columns[d] = 1.0
            penalty[:, d] = 0.0
        self._penalty, self._y, self._C, self._d = penalty, y, C, d
        self._target = _one_hot(y, n_classes)
        self._W, self._scores = np.zeros(penalty.shape), np.zeros((n_classes, n))
        self._shares, loss = shares_and_loss(self._scores, y)
        self.value = C * loss

    def step(self) -> Step | None:
        """Factor the Hessian: a block for each class, less the product that couples them."""
        C, shares, columns = self._C, self._shares, self._columns
        n_classes, p = len(shares), len(columns)
        gradient = (self._penalty * self._W + C * ((shares - self._target) @ columns.T)).reshape(-1)
        coupled = (shares[:, np.newaxis] * columns).reshape(n_classes * p, -1)
        hessian = linalg.blas.dsyrk(-C, coupled.T, trans=1)  # upper triangle
        for k in range(n_classes):
            block = slice(k * p, (k + 1) * p)
            weighted = columns * np.sqrt(C * shares[k])
            hessian[block, block] += weighted @ weighted.T
        diagonal = hessian.reshape(-1, order="F")[:: n_classes * p + 1]
        diagonal += self._penalty.reshape(-1)
        if p > self._d:
            # One number added to all intercepts changes nothing: that direction gets a curvature of its own, of the
            # size of the others', and no gradient lies along it.
            along = np.arange(self._d, n_classes * p, p)
            hessian[np.ix_(along, along)] += C * shares.shape[1] / n_classes**2
        _, step, failed = linalg.lapack.dposv(hessian, gradient, overwrite_a=1)
        if failed:
            return None
        self._step = step.reshape(n_classes, p)
        self._change = self._step @ columns
        return Step(float(gradient @ step), _largest(self._change))

    def after(self, share: float) -> float:
        """Return the objective a share of the step further."""
        W, scores = self._W - share * self._step, self._scores - share * self._change
        shares, loss = shares_and_loss(scores, self._y)
        self._tried = W, scores, shares
        return self._C * loss + 0.5 * float((self._penalty * W * W).sum())

    def move(self) -> None:
        """Make the point that was tried last the present one."""
        self._W, self._scores, self._shares = self._tried

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return ``(C, d)`` coefficients and ``(C,)`` intercepts."""
        d = self._d
        b = self._W[:, d:].sum(axis=1)  # the last column, or zeros where there is none
        return self._W[:, :d].copy(), b - b.mean()


class SoftmaxInRows:
    """The objective of C classes in (A, b) with w_k = Xᵀa_k: for more unknowns than rows.

    `gram`: inner products of the rows. `y`: classes 0..C-1. `n_classes`: c. `C`: what the loss is multiplied by.
    `intercept`: whether b is fitted.
    """

    def __init__(self, gram: FloatArray, y: IntArray, n_classes: int, C: float, *, intercept: bool) -> None:
        n = len(y)
        self._gram, self._y, self._C, self._intercept = gram, y, C, intercept
        self._target = _one_hot(y, n_classes)
        self._A, self._b, self._scores = np.zeros((n_classes, n)), np.zeros(n_classes), np.zeros((n_classes, n))
        self._shares, loss = shares_and_loss(self._scores, y)
        self.value = C * loss

    def step(self) -> Step | None:
        """Factor I + hGh for each class, and what couples them.

        With W the second derivatives of the loss by the scores, the step (v, t) solves v + W(Gv + t) = u and, for the
        intercepts, that the rows of u - v sum to their gradient. N = W(I + GW)⁻¹ = E - E(ΣE)⁻¹E, in which E are the
        classes' own (1/h² + G)⁻¹, gives v = u - N(Gu + t).
        """
        C, gram, shares = self._C, self._gram, self._shares
        pull = C * (shares - self._target)
        u = self._A + pull  # the gradient by w_k is Xᵀu_k
        own = _own(gram, np.sqrt(C * shares))
        coupling = None if own is None else _factor(own.sum(axis=0))
        if own is None or coupling is None:
            return None
        Eu = np.matmul(own, (self._scores + pull @ gram)[:, :, np.newaxis])  # E times Gu
        Nu = (Eu - np.matmul(own, _solve(coupling, Eu.sum(axis=0))))[:, :, 0]
        self._t, g_b = np.zeros(len(shares)), pull.sum(axis=1)
        if self._intercept:
            # What N answers to one in the scores of a class: [class that answers, row, class that asks].
            ones = own.sum(axis=2)
            answers = -np.matmul(own, _solve(coupling, ones.T))
            every = np.arange(len(shares))
            answers[every, :, every] += ones
            summed = answers.sum(axis=1)  # of rank C - 1: one number added to all intercepts changes nothing
            self._t = np.linalg.solve(summed + np.trace(summed) / len(summed) ** 2, g_b - Nu.sum(axis=1))
            Nu += answers @ self._t
        self._V = u - Nu
        self._GV = self._V @ gram
        self._change = self._GV + self._t[:, np.newaxis]
        return Step(float((u * self._GV).sum() + g_b @ self._t), _largest(self._change))

    def after(self, share: float) -> float:
        """Return the objective a share of the step further."""
        A, b, scores = self._A - share * self._V, self._b - share * self._t, self._scores - share * self._GV
        shares, loss = shares_and_loss(scores + b[:, np.newaxis], self._y)
        self._tried = A, b, scores, shares
        return self._C * loss + 0.5 * float((A * scores).sum())

    def move(self) -> None:
        """Make the point that was tried last the present one."""
        self._A, self._b, self._scores, self._shares = self._tried

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return ``(C, n)`` weights of the rows and ``(C,)`` intercepts."""
        return self._A, self._b - self._b.mean()


def _largest(change: FloatArray) -> float:
    """How far two scores of one row move apart at most: what is added to all of them changes nothing."""
    return float((change.max(axis=0) - change.min(axis=0)).max())


def _own(gram: FloatArray, h: FloatArray) -> FloatArray | None:
    """Return h(I + hGh)⁻¹h for each class, ``(C, n_rows, n_rows)``."""
    n_classes, n = h.shape
    own = np.empty((n_classes, n, n))
    for k in range(n_classes):
        both = np.outer(h[k], h[k])
        matrix = both * gram
        matrix.reshape(-1)[:: n + 1] += 1.0
        factor = _factor(matrix)
        if factor is None:
            return None
        inverse, failed = linalg.lapack.dpotri(factor, overwrite_c=1)
        if failed:
            return None
        np.add(inverse, np.triu(inverse, 1).T, out=own[k])  # below the diagonal the factor has zeros
        own[k] *= both
    return own


def _factor(matrix: FloatArray) -> FloatArray | None:
    factor, failed = linalg.lapack.dpotrf(matrix.T, overwrite_a=1)  # symmetric: .T only says its order
    return None if failed else factor


def _solve(factor: FloatArray, right: FloatArray) -> FloatArray:
    solved: FloatArray = linalg.lapack.dpotrs(factor, right)[0]
    return solved
