"""The direct competitor: a linear model trained with noise on the private rows, beside votes, at the same (ε, δ).

    python benchmarks/direct.py [mushroom] [a9a] [imdb] [imdb-5000] [repeats]
    python benchmarks/direct.py cpu [mushroom] [a9a] [imdb] [imdb-5000] [repeats]
    python benchmarks/direct.py outside [digits] ["breast cancer"] [anes96] [repeats]

Same splits (80 % private, 2 % public, 18 % test; δ = 1/n), means over repeats. CPU time is that of all processes, and
stands as a ratio to the direct method's, measured in the same run. Votes learn from the leading directions of the
public pool where columns are many, so the direct method is given such directions too, in lines of its own. The texts of
imdb are looked for in the folder named by QUORATE_DATA.

With `cpu` one fit of the shipped direct method at ε = 1 stands beside one of the plain method on the same rows, back to
back, with one thread each; the medians of a few such pairs are told.

With `outside` the direct method by its defaults stands beside the plain one, whose clip was fixed beforehand, on the
tables of `recipe.py outside`.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
from recipe import OUTSIDE
from recipe import parts as parts_of
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from quorate.experiments.noisy_gradient_descent import noisy_gradient_descent, plain, public_coordinates
from quorate.experiments.sources import Split, a9a, folder_of_files, imdb, mushroom, split
from quorate.experiments.table4 import best_recipe, classifier, fitted_score

SETS = {"mushroom": mushroom, "a9a": a9a, "imdb": imdb, "imdb-5000": imdb}
WITHOUT_FILES = ("mushroom", "a9a")
N_PUBLIC = {"imdb-5000": 5_000}
DIRECTIONS = (32, 64, 256)  # leading right singular vectors of the public pool


def cpu_seconds() -> float:
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)  # a child's CPU time is known once it has ended
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def direct(parts, epsilon, seed):
    rng = np.random.default_rng(seed)
    rule = noisy_gradient_descent(
        parts.X_private, parts.y_private, epsilon=epsilon, delta=1 / len(parts.y_private), rng=rng
    )
    return float(np.mean(rule.predict(parts.X_test) == parts.y_test))


def in_public_directions(n_directions):
    def fit(parts, epsilon, seed):
        if n_directions >= min(parts.X_public.shape):
            return float("nan")
        basis = randomized_svd(parts.X_public, n_directions, random_state=0)[2].T
        rng = np.random.default_rng(seed)
        rule = noisy_gradient_descent(
            np.asarray(parts.X_private @ basis),
            parts.y_private,
            epsilon=epsilon,
            delta=1 / len(parts.y_private),
            rng=rng,
        )
        return float(np.mean(rule.predict(np.asarray(parts.X_test @ basis)) == parts.y_test))

    return fit


def default(parts, epsilon, seed):
    return fitted_score(parts, classifier(parts, epsilon, seed)).accuracy


def best(parts, epsilon, seed):
    return fitted_score(parts, classifier(parts, epsilon, seed, **best_recipe(parts.name, parts, epsilon))).accuracy


def compare(name: str, repeats: int) -> None:
    data = SETS[name]() if name in WITHOUT_FILES else SETS[name](folder_of_files())
    size = {"n_public": N_PUBLIC.get(name)}
    directions = {f"direct, {n} public directions": in_public_directions(n) for n in DIRECTIONS}
    methods = {"noisy gradient descent, direct": direct, **directions, "default recipe": default, "best": best}
    print(f"{name}, {repeats} splits")
    print(f"{'':<34}{'ε = 0.5':>10}{'ε = 1':>10}{'ε = 2':>10}{'CPU, ratio':>13}")
    unit = None
    for told, method in methods.items():
        begun = cpu_seconds()
        means = [
            np.mean([method(split(data, seed, **size), epsilon, seed) for seed in range(repeats)])
            for epsilon in (0.5, 1, 2)
        ]
        spent = cpu_seconds() - begun
        unit = unit or spent
        print(f"{told:<34}" + "".join(f"{mean:>10.4f}" for mean in means) + f"{spent / unit:>13.1f}")


def beside_plain(name: str, repeats: int) -> None:
    """Print the CPU time of a fit in public coordinates beside that of a plain one, pair by pair."""
    data = SETS[name]() if name in WITHOUT_FILES else SETS[name](folder_of_files())
    parts = split(data, 0, n_public=N_PUBLIC.get(name))
    with threadpool_limits(1):
        both = [[fit(parts, 1.0, seed) for fit in (public_coordinates, plain)] for seed in range(repeats)]
    ours, other = (np.array([pair[i].more["cpu_seconds"] for pair in both]) for i in range(2))
    ratios = ours / other
    print(
        f"{name}, {parts.X_public.shape[0]:,} public: {np.median(ours):.2f} s of CPU, plain {np.median(other):.2f} s, "
        f"ratio {np.median(ratios):.1f} ({ratios.min():.1f} to {ratios.max():.1f}); accuracy of the first pair "
        f"{both[0][0].accuracy:.4f}, plain {both[0][1].accuracy:.4f}"
    )


def outside(name: str, repeats: int) -> None:
    """Print the accuracy of the direct method and of the plain one on a table that no recipe was fitted on."""
    table = OUTSIDE[name]
    X, codes = table.load()
    classes = range(int(codes.max()) + 1)
    print(f"{name}: {table.n:,} private rows, {table.m} public, {len(classes)} classes; {repeats} splits")
    for told, fit in (("public coordinates, direct", public_coordinates), ("noisy gradient descent, direct", plain)):
        line = f"  {told:<32}"
        for epsilon in (0.5, 1.0, 2.0):
            right = []
            for seed in range(repeats):
                private, public, test = parts_of(table, X, codes, seed)
                parts = Split(
                    name=name,
                    X_private=private[0],
                    y_private=private[1],
                    X_public=public[0],
                    X_test=test[0],
                    y_test=test[1],
                )
                right.append(fit(parts, epsilon, seed, classes=classes).accuracy)
            line += f"  {np.mean(right):.3f}±{np.std(right, ddof=1) / len(right) ** 0.5:.3f}"
        print(line, flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    repeats = next((int(word) for word in words if word.isdigit()), 5)
    if "outside" in words:
        for name in [word for word in words if word in OUTSIDE] or ("digits", "breast cancer"):
            outside(name, repeats)
        sys.exit()
    for name in [word for word in words if word in SETS] or WITHOUT_FILES:
        (beside_plain if "cpu" in words else compare)(name, repeats)
