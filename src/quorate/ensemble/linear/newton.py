r"""Damped Newton to the optimum of one teacher's logistic loss, from its own rows and nothing else.

For two classes with signs :math:`s_i = \pm 1` the objective is scikit-learn's,
:math:`f(w, b) = \tfrac12 \|w\|^2 + C \sum_i \log(1 + e^{-m_i})` with margins :math:`m_i = s_i (x_i \cdot w + b)`; the
intercept is not penalised.

**Which matrix is factored.** With no fewer rows than columns the Hessian of (w, b). With fewer, w is a combination
:math:`X^\top a` of the rows, and the step is taken in a by the matrix inversion lemma: n × n instead of d × d, from
the inner products of the rows alone (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006,
Algorithm 3.1). A shard of 100 rows of 5,000 words costs what one of 100 columns does.

**When it stops.** Let :math:`\lambda^2 = g^\top H^{-1} g` be the squared decrement of a full step and R the largest
change of a margin in it. The third derivative along the step is at most R times the second (Bach, *Self-concordant
analysis for logistic regression*, 2010, Sect. 2), so the next decrement is at most about :math:`\lambda R`; and as the
penalty alone makes f strongly convex, that bounds the distance of w from the optimum. The teacher stops at
:math:`\lambda R \le 10^{-10}`, whatever other teachers do.

**Last bits.** Each teacher is solved by calls of its own, on arrays of its own shape, with one thread. Nothing is
stacked or padded with other teachers' rows, so that no blocking of a product can make a last bit of one depend on
another.

**More than two classes.** The loss is scikit-learn's multinomial one, with one score a class. The objective is
:math:`f(W, b) = \tfrac12 \|W\|^2 + C \sum_i (\log\sum_k e^{z_{ik}} - z_{i y_i})` with scores :math:`z_{ik} = x_i \cdot
w_k + b_k`. Adding one number to every intercept changes nothing; the intercepts given back sum to zero, as
scikit-learn's do.

With few unknowns the Hessian of all of them is factored. Else each :math:`w_k = X^\top a_k` is a combination of the
rows, and the step costs one n × n factor a class and one more (Rasmussen and Williams, 2006, Algorithm 3.3).
Everything said of stopping and of last bits holds here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from quorate.deferred import linalg, special

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray

# λR at which a teacher stops: coefficients are then within about this of the optimum.
_CLOSE = 1e-10
_MOST_STEPS = 100
_SHORTEST = 2.0**-30  # of a step that is still tried
# Of the objective: below this a difference of two values is rounding.
_ROUNDING = 1e-12
_ARMIJO = 1e-4


class Optimum(NamedTuple):
    """Where an objective is least. `coef`: one score for two classes, else one a class; `n_iter`: Newton steps."""

    coef: FloatArray
    intercept: FloatArray
    n_iter: int


class Step(NamedTuple):
    """A Newton step; `squared_decrement`: the gradient times the step; `largest`: the largest change of a margin."""

    squared_decrement: float
    largest: float


class Objective(Protocol):
    """A convex objective that knows its present point and its Newton step."""

    def step(self) -> Step | None:
        """Find the step; None where the Hessian has no Cholesky factor."""
        ...

    def after(self, share: float) -> float:
        """Return the objective a share of the step further; that point is kept until the next call."""
        ...

    def move(self) -> None:
        """Make the point that was tried last the present one."""
        ...


def minimise(objective: Objective, value: float) -> int | None:
    """Take damped Newton steps from the first point, of this value; return how many; None if there is no way on."""
    for n_steps in range(1, _MOST_STEPS + 1):
        step = objective.step()
        if step is None:
            return None
        share = 1.0
        while True:
            tried = objective.after(share)
            if tried <= value - _ARMIJO * share * step.squared_decrement + _ROUNDING * abs(value):
                break
            share /= 2
            if not share >= _SHORTEST:
                return None
        objective.move()
        value = tried
        if share == 1.0 and step.squared_decrement * step.largest**2 <= _CLOSE**2 and step.largest <= 1.0:
            return n_steps
    return None


def other_and_loss(margins: FloatArray) -> tuple[FloatArray, float]:
    r"""Return :math:`1/(1 + e^{m})`, the probability of the other class, and the sum of :math:`\log(1 + e^{-m})`."""
    return special.expit(-margins), -float(np.add.reduce(special.log_expit(margins)))


class InColumns:
    """The objective of two classes in (w, b), for no fewer rows than columns. `signs`: ±1. `C`: weighs the loss."""

    def __init__(self, X: FloatArray, signs: FloatArray, C: float, *, intercept: bool) -> None:
        n, d = X.shape
        # Columns side by side in memory, times the rows' signs: margins are one product, and weights of rows run along.
        self._columns = np.empty((d + intercept, n))
        np.multiply(X.T, signs, out=self._columns[:d])
        self._penalty = np.ones(d + intercept)
        if intercept:
            self._columns[d] = signs
            self._penalty[d] = 0.0
        self._C, self._d = C, d
        self._weighted = np.empty_like(self._columns)
        self._w, self._margins = np.zeros(d + intercept), np.zeros(n)
        self._other, loss = other_and_loss(self._margins)
        self.value = C * loss

    def step(self) -> Step | None:
        """Factor the Hessian."""
        other, C = self._other, self._C
        gradient = self._penalty * self._w - C * (self._columns @ other)
        np.multiply(self._columns, np.sqrt(C * other * (1.0 - other)), out=self._weighted)
        hessian = linalg.blas.dsyrk(1.0, self._weighted.T, trans=1)  # its upper triangle
        diagonal = hessian.reshape(-1, order="F")[:: len(gradient) + 1]
        diagonal += self._penalty
        _, self._step, failed = linalg.lapack.dposv(hessian, gradient, overwrite_a=1)
        if failed:
            return None
        self._change = self._step @ self._columns
        return Step(float(gradient @ self._step), float(np.abs(self._change).max()))

    def after(self, share: float) -> float:
        """Return the objective a share of the step further."""
        w, margins = self._w - share * self._step, self._margins - share * self._change
        other, loss = other_and_loss(margins)
        self._tried = w, margins, other
        return self._C * loss + 0.5 * float((self._penalty * w) @ w)

    def move(self) -> None:
        """Make the point that was tried last the present one."""
        self._w, self._margins, self._other = self._tried

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return ``(1, d)`` coefficients and ``(1,)`` intercept."""
        w, d = self._w, self._d
        return w[np.newaxis, :d].copy(), w[d:].copy() if len(w) > d else np.zeros(1)


class InRows:
    """The objective of two classes in (a, b) with w = Xᵀa, for fewer rows than columns. `gram`: XXᵀ. `signs`: ±1."""

    def __init__(self, gram: FloatArray, signs: FloatArray, C: float, *, intercept: bool) -> None:
        n = len(signs)
        self._gram, self._signs, self._C, self._intercept = gram, signs, C, intercept
        self._a, self._b, self._scores = np.zeros(n), 0.0, np.zeros(n)  # scores without b
        self._other, loss = other_and_loss(np.zeros(n))
        self.value = C * loss

    def step(self) -> Step | None:
        """Factor I + hGh, whose eigenvalues are at least one; h are roots of the second derivatives."""
        other, C, gram = self._other, self._C, self._gram
        h = np.sqrt(C * other * (1.0 - other))
        pull = C * self._signs * other
        u = self._a - pull  # the gradient is Xᵀu
        Gu = self._scores - gram @ pull
        matrix = np.outer(h, h)
        matrix *= gram
        matrix.reshape(-1)[:: len(h) + 1] += 1.0
        right = np.empty((len(h), 2), order="F")
        right[:, 0] = h * Gu
        right[:, 1] = h
        _, solved, failed = linalg.lapack.dposv(
            matrix.T, right, overwrite_a=1, overwrite_b=1
        )  # symmetric: .T only says its order
        if failed:
            return None
        t = 0.0
        if self._intercept:
            g_b = -float(pull.sum())
            t = (g_b - float(h @ solved[:, 0])) / float(h @ solved[:, 1])
        self._v = u - h * (solved[:, 0] + t * solved[:, 1])
        self._t = t
        self._Gv = gram @ self._v
        decrement = float(u @ self._Gv) + (g_b * t if self._intercept else 0.0)
        return Step(decrement, float(np.abs(self._Gv + t).max()))

    def after(self, share: float) -> float:
        """Return the objective a share of the step further."""
        a, b, scores = self._a - share * self._v, self._b - share * self._t, self._scores - share * self._Gv
        other, loss = other_and_loss(self._signs * (scores + b))
        self._tried = a, b, scores, other
        return self._C * loss + 0.5 * float(a @ scores)

    def move(self) -> None:
        """Make the point that was tried last the present one."""
        self._a, self._b, self._scores, self._other = self._tried

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return ``(1, n)`` weights of the rows and ``(1,)`` intercept."""
        return self._a[np.newaxis], np.array([self._b])


def shares_and_loss(scores: FloatArray, y: IntArray) -> tuple[FloatArray, float]:
    """Return the classes' probabilities ``(C, n_rows)`` by scores, and the summed negative log-likelihood."""
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
    """The objective of C classes ``0..C-1`` in (W, b), for few unknowns. `C`: what the loss is multiplied by."""

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
    """The objective of C classes in (A, b) with w_k = Xᵀa_k, for more unknowns than rows. `gram`: XXᵀ."""

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
