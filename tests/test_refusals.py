"""No refusal names a secret: nothing that was revealed in a function may reach the text of an error raised there.

A reading of the source. In each function, what comes out of ``.reveal()`` is followed through assignments, loops and
comprehensions; it may stand neither in the arguments of a ``raise``, nor in a call that repeats its argument in a
refusal. Shapes, kinds and dtypes of revealed arrays are public.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "quorate"
PUBLIC = {"shape", "ndim", "dtype", "size", "kind"}  # of an array
ECHOES = {  # name their argument where they refuse it
    "real", "count", "one_of", "checked_scale", "discrete_gaussian", "discrete_laplace", "geometric", "checked_orders",
}  # fmt: skip
KNOWN = {  # where the reading above sees more than there is, and why it is none
    ("smooth.py", "release_total"): "the scale is clipped to what the sampler takes",
    ("shard_rows.py", "check_shards"): "which kinds of fault a partition has, which is a fault of the code",
    ("prediction.py", "_prepare"): "the number of rows and of labelled ones are public in a learner",
}


def reveals(node, secret):
    """Whether the value of an expression may depend on a revealed secret."""
    if isinstance(node, ast.Attribute) and node.attr in PUBLIC:
        return False
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reveal":
            return True
        if isinstance(node.func, ast.Name) and node.func.id in {"Secret", "type", "isinstance", "hasattr"}:
            return False
    if isinstance(node, ast.Name):
        return node.id in secret
    return any(reveals(child, secret) for child in ast.iter_child_nodes(node))


def names_of(target):
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def assigned(target, value):
    """Pair names with what they get: ``a, b = x, y`` member by member."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def leaks(function):
    secret = set()
    before = -1
    while len(secret) != before:  # an assignment further up may take what a loop further down assigned
        before = len(secret)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name, value in assigned(target, node.value):
                        secret |= names_of(name) if reveals(value, secret) else set()
            elif isinstance(node, ast.For | ast.comprehension | ast.NamedExpr):
                value = node.value if isinstance(node, ast.NamedExpr) else node.iter
                secret |= names_of(node.target) if reveals(value, secret) else set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None and reveals(node.exc, secret):
            yield f"{function.name}, line {node.lineno}: {ast.unparse(node.exc)[:120]}"
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ECHOES and any(reveals(argument, secret) for argument in node.args):
                yield f"{function.name}, line {node.lineno}: {ast.unparse(node)[:120]}"


def functions(source):
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_refusal_holds_what_was_revealed(path):
    source = path.read_text()
    if "reveal" in source:
        read = [function for function in functions(source) if (path.name, function.name) not in KNOWN]
        assert not [leak for function in read for leak in leaks(function)]


@pytest.mark.parametrize(("file", "name"), KNOWN)
def test_every_exception_is_still_needed(file, name):
    sources = (path.read_text() for path in SOURCE.rglob(file))
    read = [function for source in sources for function in functions(source) if function.name == name]
    assert [leak for function in read for leak in leaks(function)]


CHEATS = {
    "a sampler that names the scale it refuses": (
        "def release(sensitivity, step):\n"
        "    scale = 4 * (sensitivity.reveal() / step + 1)\n"
        "    return discrete_gaussian(scale, 1, source)\n"
    ),
    "a count in a message": (
        "def check(counts):\n"
        "    for row in counts.reveal():\n"
        "        most = max(row)\n"
        "        if most > 9:\n"
        "            raise ValueError(f'got {most}')\n"
    ),
    "a number that is checked": "def check(total):\n    return real('total', float(total.reveal()), above=0)\n",
}


@pytest.mark.parametrize("source", CHEATS.values(), ids=CHEATS)
def test_that_test_sees_a_refusal_that_names_a_secret(source):
    assert [leak for function in functions(source) for leak in leaks(function)]


def test_that_test_lets_shapes_and_kinds_pass():
    source = (
        "def check(counts):\n    n, c = counts.reveal().shape\n    raise ValueError(f'got {n} rows, {type(counts)}')\n"
    )
    assert not [leak for function in functions(source) for leak in leaks(function)]
