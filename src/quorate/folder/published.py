"""What a run has published: names and sums, kept on the private side, and files that are taken for what they were.

``public/`` is where people look, copy and tidy up. So what stands there is no proof of what the run wrote: a file may
have been changed, put there by somebody else, or be a link to something private. The names and SHA-256 sums of what was
written are in ``private/published.json``, and nothing is exported or read back that differs from them.

A published model is opened by skops with a fixed list of types, never by pickle, so that no file runs code.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from quorate.arguments import for_shell
from quorate.errors import PreconditionFailed, SeededNoiseRefused
from quorate.folder.folder import RunFolder
from quorate.release.keys import write_atomically
from quorate.report.words import REPORT_FILES
from quorate.stored_names import place_of

if TYPE_CHECKING:
    from quorate.report import Facts


# Every name that a run publishes under. That of the facts is written last: with it a run counts as finished.
FACTS, STUDENT, PROMPT = "facts.json", "student.skops", "prompt.json"
POOL = "pool.parquet"  # rows that were drawn from noisy counts
NAMES = (
    "labels.csv", "guarantee.json", "model_card.md", *REPORT_FILES.values(), STUDENT, PROMPT, POOL, "audit.json", FACTS,
)  # fmt: skip

_FORMAT = "quorate published 1"
_NOT_ONNX = "_hist_gradient_boosting"  # types of scikit-learn that neither skops trusts nor skl2onnx converts


def is_finished(folder: RunFolder) -> bool:
    """Tell whether the run has published all it had to."""
    return os.path.lexists(folder.public / FACTS)


def export_command(root: Path, facts: Facts) -> str | None:
    """Return the command that exports a finished run as ``quorate check-export`` accepts it; None for none."""
    trusted = () if facts.student_file is None else facts.student_file.trusted
    if facts.seeded or any(_NOT_ONNX in name for name in trusted):
        return None
    return f"quorate export {for_shell(root)} --to outbox --format tre{' --model onnx' if trusted else ''}"


def publish_files(folder: RunFolder, files: Mapping[str, bytes], *, anew: bool = False) -> None:
    """Write files, each one of :data:`NAMES`, to ``public/`` and note their sums. `anew`: whether this is all that the
    run has published from now on; where not, what stands beside stays. A crash leaves nothing that could not be
    exported: while files are replaced, their old sums are good as well as the new ones; and a public side that is
    written anew has no facts, so is not finished, until all of it is there.
    """
    sums = {name: [sha256(content).hexdigest()] for name, content in files.items()}
    before = {} if anew else _sums(folder) or {}
    if anew:
        for name in (FACTS, *NAMES):
            if name == FACTS or name not in files:
                (folder.public / name).unlink(missing_ok=True)
        _note(folder, sums)
    elif before:
        _note(folder, {**before, **{name: [*before.get(name, []), *sums[name]] for name in sums}})
    for name in sorted(files, key=lambda name: name == FACTS):
        write_atomically(folder.public / name, files[name])
    if before:
        _note(folder, {**before, **sums})


def read_published(folder: RunFolder, name: str) -> bytes:
    """Read a file of ``public/`` as this run wrote it: no link, and no other content. Of a run that was finished by a
    version that noted no sums, the last cannot be told.
    """
    sums = _sums(folder)
    content = _content(folder, name)
    if sums is not None and sha256(content).hexdigest() not in sums.get(name, ()):
        raise PreconditionFailed(
            f"public/{name} is not what this run wrote there: its SHA-256 sum is not the one in private/"
            f"{folder.published.name}. Find out who changed it; {_anew(folder)}"
        )
    return content


def read_facts(root: Path) -> Facts:
    """Read the facts of a finished run; PreconditionFailed where it has not finished, or they are not its own."""
    folder = RunFolder(root)
    if not is_finished(folder):
        from quorate.folder.sites.settings import combines_sites

        if combines_sites(root):
            raise PreconditionFailed(
                f"{root / 'quorate.toml'} lists [[sites]], and nothing was released yet, or by an earlier version; the "
                f"command is: {_command(folder)}"
            )
        if not root.is_dir():
            raise PreconditionFailed(f"there is no folder {root}; give the folder of a run")
        raise PreconditionFailed(
            f"{root} has no finished run yet; start or resume it with: quorate run {for_shell(root)}"
        )
    from quorate.report import Facts

    return Facts.from_json(read_published(folder, FACTS).decode("utf-8"))


def write_copies(destination: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a new folder, and a manifest of their SHA-256 sums; return their paths, the manifest last."""
    refuse_filled(destination)
    destination.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(destination / name, content)
    manifest = destination / "manifest.json"
    copied = {"sha256": {name: sha256(content).hexdigest() for name, content in contents.items()}}
    write_atomically(manifest, (json.dumps(copied, indent=2, sort_keys=True) + "\n").encode())
    return [*(destination / name for name in contents), manifest]


def refuse_filled(destination: Path) -> None:
    """Refuse a destination of copies that is no new or empty folder; a link that leads nowhere is none."""
    if os.path.lexists(destination) and (not destination.is_dir() or any(destination.iterdir())):
        what = "is not empty" if destination.is_dir() else "is there already, and is no folder"
        raise PreconditionFailed(f"--to {destination} {what}; name a new folder, so that nothing else leaves with it")


def published_files(root: Path) -> dict[str, bytes]:
    """Read all that a finished run published, by name."""
    folder = RunFolder(root)
    if read_facts(root).seeded:
        raise SeededNoiseRefused(
            "seeded noise: this run is reproducible, therefore not private. Every output is marked and export is "
            "refused. Remove unsafe_noise_seed"
        )
    sums = _sums(folder)
    if sums is None:
        raise PreconditionFailed(
            f"private/{folder.published.name} is missing, in which a run notes what it published; quorate run "
            f"{for_shell(root)} writes it again, at no charge"
        )
    return {name: read_published(folder, name) for name in sorted(sums)}


def not_published(root: Path) -> list[str]:
    """Name what lies in ``public/`` beside what the run published; hidden names are left out."""
    folder = RunFolder(root)
    known = _sums(folder) or NAMES
    entries = [path.name for path in folder.public.iterdir()] if folder.public.is_dir() else []
    return sorted(name for name in entries if name not in known and not name.startswith("."))


def _sums(folder: RunFolder) -> dict[str, list[str]] | None:
    """The sums of what was published, each name's good ones; None where none were noted."""
    try:
        noted = json.loads(folder.published.read_bytes())
        if noted["format"] != _FORMAT or not set(noted["sha256"]) <= set(NAMES):
            raise ValueError  # noqa: TRY301
        return {str(name): [str(digest) for digest in good] for name, good in noted["sha256"].items()}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PreconditionFailed(
            f"private/{folder.published.name} is damaged; restore it from a backup, or {_anew(folder)}"
        ) from None


def _note(folder: RunFolder, sums: Mapping[str, list[str]]) -> None:
    noted = {"format": _FORMAT, "sha256": dict(sums)}
    write_atomically(folder.published, (json.dumps(noted, indent=2, sort_keys=True) + "\n").encode(), mode=0o600)


def _content(folder: RunFolder, name: str) -> bytes:
    """Read a regular file of ``public/``, following no link and waiting for nobody."""
    try:
        public = os.open(folder.public, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise PreconditionFailed(f"{folder.public} is a link or no folder; put the run's own folder back") from None
        raise
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=public)
    except FileNotFoundError:
        raise PreconditionFailed(f"public/{name} is missing; {_anew(folder)}") from None
    except OSError as error:
        what = {errno.ELOOP: "a symbolic link", errno.ENXIO: "no regular file"}.get(error.errno or 0)
        if what is None:
            raise
        raise _irregular(folder, name, what) from None
    finally:
        os.close(public)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise _irregular(folder, name, "no regular file")
    with os.fdopen(opened, "rb") as file:
        return file.read()


def _irregular(folder: RunFolder, name: str, what: str) -> PreconditionFailed:
    return PreconditionFailed(
        f"public/{name} is {what}, and this run wrote a file there. Find out who changed it; {_anew(folder)}"
    )


def _anew(folder: RunFolder) -> str:
    return f"{_command(folder)} writes the public side anew"


def _command(folder: RunFolder) -> str:
    from quorate.folder.sites.settings import combines_sites  # here: it brings in all that reads settings

    return f"quorate {'votes combine' if combines_sites(folder.root) else 'run'} {folder.root}"


MANIFEST: Final = "manifest.json"


def read_exported(folder: Path, name: str) -> bytes:
    """Read a file of an exported folder; PreconditionFailed where it is not what the manifest beside it says."""
    try:
        sums = json.loads((folder / MANIFEST).read_bytes())["sha256"]
        noted = str(sums[name])
        content = (folder / name).read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        raise PreconditionFailed(
            f"{folder} holds no {name} with its sum in {MANIFEST}; export the run again: quorate export RUN --to FOLDER"
        ) from None
    if sha256(content).hexdigest() != noted:
        raise PreconditionFailed(
            f"{folder / name} is not what was exported: its SHA-256 sum is not the one in {MANIFEST}. Find out who "
            "changed it, or export the run again"
        )
    return content


_DESCRIPTION = "schema.json"  # of the classes in a file of skops

#: Beside what skops opens by itself: parts of scikit-learn's own estimators, which hold numbers.
TRUSTED: Final = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.gaussian_process.kernels.Sum",
        "sklearn.gaussian_process.kernels.WhiteKernel",
    }
)


def untrusted_types(content: bytes) -> list[str]:
    """Return the types that whoever opens a model would have to trust, sorted; skops raises what it will."""
    from quorate.deferred import skops

    return sorted(skops.io.get_untrusted_types(data=content))


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip file of some files: the same bytes for the same files, whenever it is made."""
    written = io.BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(member, content, ZIP_DEFLATED)
    return written.getvalue()


def model_bytes(model: Any) -> bytes:
    """Return a model as skops writes it, without the time of day, which would tell how long private rows took."""
    from quorate.deferred import skops

    with ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        return zipped({name: archive.read(name) for name in archive.namelist()})


def with_places_of_now(content: bytes) -> bytes:
    """Return what skops wrote with each class of this package where it is now; the same bytes where none has moved."""
    with ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read(_DESCRIPTION))
        if not _put_places(tree):
            return content
        parts = {name: archive.read(name) for name in archive.namelist()}
    return zipped({**parts, _DESCRIPTION: json.dumps(tree).encode()})


def _put_places(tree: Any) -> bool:
    """Put the place of now into each description of a class in a tree; tell whether one has moved."""
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    changed = [_put_places(part) for part in parts]
    module, name = (tree.get("__module__"), tree.get("__class__")) if isinstance(tree, dict) else (None, None)
    if isinstance(module, str) and (path := f"{module}.{name}") != (now := place_of(path)):
        tree["__module__"], _, tree["__class__"] = now.rpartition(".")
        return True
    return any(changed)


def student_from(content: bytes, *, place: str, trusted: Sequence[str], name_them_in: str, anew: str) -> Any:
    """Open a model from the bytes that a run published, which skops wrote. `place`: where they are from. `trusted`:
    full names of types that are opened beside :data:`TRUSTED`. `name_them_in`: where a user says which types are
    theirs. `anew`: what to do about an unreadable file.
    """
    from quorate.deferred import skops

    types = TRUSTED | {place_of(name) for name in trusted}
    try:
        content = with_places_of_now(content)
        unknown = [name for name in untrusted_types(content) if name not in types]
    except Exception:  # noqa: BLE001 - whatever a broken file breaks
        raise PreconditionFailed(f"{place} cannot be read; {anew}") from None
    if unknown:
        raise PreconditionFailed(
            f"{place} holds the types {', '.join(unknown)}, which are not opened unasked; if they are yours, name them "
            f"in {name_them_in}"
        )
    try:
        return skops.io.loads(content, trusted=sorted(types))
    except Exception:  # noqa: BLE001 - the description was whole, and what it describes is not
        raise PreconditionFailed(f"{place} cannot be read; {anew}") from None
