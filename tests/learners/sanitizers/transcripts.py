"""What a sanitizer releases under scripted noise, and how likely each of its transcripts is on other rows."""

from fractions import Fraction

import numpy as np

IMPOSSIBLE = Fraction(10**9)


class Transcripts:
    """Runs `work` with scripted noise in the shipped functions that read rows, and keeps what they release.

    `releases`: (module, function) of each; its first argument is private, the last are scale and source.
    """

    def __init__(self, patch, work, *releases):
        self.patch, self.work = patch, work
        self.releases = [(module, name, getattr(module, name)) for module, name in releases]

    def run(self, rows, noise_for):
        """`noise_for(number, asked, counts)` gives the noise of a release; returns the releases and what follows."""
        said = []

        def recorded(module, name, function):
            def release(*arguments):
                asked = (name, repr(arguments[1:-1]))
                counts = self._with_noise(module, function, arguments, 0)
                noisy = self._with_noise(module, function, arguments, noise_for(len(said), asked, counts))
                said.append((asked, Fraction(arguments[-2]), noisy, int(np.abs(noisy - counts).sum())))
                return noisy

            return release

        with self.patch.context() as patch:
            for module, name, function in self.releases:
                patch.setattr(module, name, recorded(module, name, function))
            return said, self.work(np.array(rows))

    def _with_noise(self, module, function, arguments, noise):
        def scripted(scale, size, source):
            assert scale == arguments[-2]
            return np.resize(noise, size)

        with self.patch.context() as patch:
            patch.setattr(module, "discrete_laplace", scripted)
            return function(*arguments)

    def loss(self, rows, neighbour, noise):
        """Log-likelihood ratio of what `rows` give under `noise`; huge where the neighbour cannot give it.

        The likelihood of a release is the product of the discrete Laplace masses of what was added to the true counts.
        """
        said, result = self.run(rows, lambda number, asked, counts: np.roll(noise, -number))

        def same(number, asked, counts):
            if number >= len(said) or said[number][0] != asked:
                raise LookupError
            return said[number][2] - counts

        try:
            theirs, their_result = self.run(neighbour, same)
        except LookupError:  # it asks something else: this transcript is impossible there
            return IMPOSSIBLE
        released = ([noisy.tolist() for *_, noisy, _ in each] for each in (said, theirs))
        if len({str(each) for each in released}) > 1 or not np.array_equal(result, their_result):
            return IMPOSSIBLE
        pairs = zip(said, theirs, strict=True)
        return sum((Fraction(other[3] - own[3]) / own[1] for own, other in pairs), Fraction(0))

    def worst_loss(self, pairs, noises, *, until=None):
        """Over pairs of neighbours and lists of noise, the largest loss, or the first above `until`."""
        worst = Fraction(0)
        for noise in noises:
            for rows, neighbour in pairs:
                worst = max(worst, self.loss(rows, neighbour, noise))
                if until is not None and worst > until:
                    return worst
        return worst
