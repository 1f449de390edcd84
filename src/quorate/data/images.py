"""Images from files: numbers of pixels, all of one size and kind that public images tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np

from quorate.ambient import unwarned
from quorate.data.columns import column, families, texts
from quorate.data.rows import Rows, columns, is_frame
from quorate.errors import DataRefused, PreconditionFailed
from quorate.types import FloatArray

_BY_PILLOW = (".png", ".jpg", ".jpeg")
KNOWN = (*_BY_PILLOW, ".pgm", ".npy")
_SPACE = b" \t\r\n"
_OF_HEADER = 1 << 16  # bytes in which the header of a PGM file ends
_OF_A_NUMBER = 16  # bytes of a pixel that is written as text, with the space around it


@dataclass(frozen=True, slots=True)
class ImageForm:
    """What an image looks like, a public fact: pixels on its sides, and 1 number a pixel for grey, 3 for colours."""

    height: int
    width: int
    channels: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an array of one image."""
        return (self.height, self.width) if self.channels == 1 else (self.height, self.width, self.channels)

    @property
    def size(self) -> int:
        """Numbers of one image."""
        return self.height * self.width * self.channels


def public_images(folder: Path, names: Sequence[Any], *, called: str) -> tuple[FloatArray, ImageForm]:
    """Read public images, which tell the form of all: grey where all of them are, else colours. Refuses one that is
    missing, no image, or of another size than the first; PreconditionFailed without Pillow.
    """
    if any(_suffix(name) in _BY_PILLOW for name in names):
        pillow()
    read = []
    for place, name in enumerate(names, start=1):
        image = read_image(folder, name)
        if image is None:
            raise DataRefused(
                f"{called}, row {place}: the file it names in {folder} is missing or no image "
                f"({', '.join(KNOWN)}); mend it, or drop the row"
            )
        read.append(image)
    sizes = {array.shape[:2] for array in read}
    if len(sizes) > 1:
        (height, width), (h, w) = sorted(sizes)[:2]
        raise DataRefused(
            f"{called}: images are {height} × {width} and {h} × {w} pixels; one size is needed. Bring all of them to it"
        )
    ((height, width),) = sizes
    form = ImageForm(height, width, 3 if any(array.ndim == 3 for array in read) else 1)
    return np.array([_in_form(array, form) for array in read]).reshape(len(read), *form.shape), form


def image_columns(pool: Rows) -> list[str]:
    """Name the columns of a public frame whose entries are names of image files."""
    if not is_frame(pool):
        return []
    names, family = [], families(pool)
    for position, name in enumerate(columns(pool) or ()):
        if family[name] == "text":
            present = [cell for cell in texts(column(pool, position)) if cell is not None]
            if present and all(_suffix(cell) in KNOWN for cell in present):
                names.append(name)
    return names


def private_images(folder: Path, names: Sequence[Any], form: ImageForm, *, missing: float) -> FloatArray:
    """Read images of a form, each row from its own file; of what is none, every number is `missing`. Nothing is
    refused: Pillow is asked for by public names alone.
    """
    rows = np.full((len(names), form.size), missing, dtype=np.float64)
    for row, name in zip(rows, names, strict=True):
        image = read_image(folder, name, only=form)
        if image is not None:
            with np.errstate(all="ignore"):  # the mean of very large colours
                values = _in_form(image, form).ravel()
            if np.isfinite(values).all():
                row[:] = values
    return rows


class ImageRows:
    """What :func:`private_images` returns, infinite for missing, by slices of rows; PreconditionFailed for a file that
    changed.
    """

    def __init__(self, folder: Path, names: Sequence[Any], form: ImageForm) -> None:
        self._folder, self._names, self._form = folder, names, form
        self.shape = (len(names), form.size)
        self._states = [_state(folder, name) for name in names]

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"ImageRows({self._form.size} numbers)"

    def __getitem__(self, rows: slice) -> FloatArray:
        names = self._names[rows]
        images = private_images(self._folder, names, self._form, missing=float("inf"))
        if [_state(self._folder, name) for name in names] != self._states[rows]:
            raise PreconditionFailed(f"an image in {self._folder} was changed while it was read; start again")
        return images


def _state(folder: Path, name: Any) -> tuple[int, int, int] | None:
    try:
        status = (folder / name.strip()).stat()
    except Exception:  # noqa: BLE001 - whatever a private name is, it is no file
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_image(folder: Path, name: Any, *, only: ImageForm | None = None) -> Any | None:
    """Read one image: ``(height, width)`` or ``(height, width, 3)`` numbers; None for what is none, without error or
    warning, since either may be private. `only`: of another size, the header alone is read.
    """
    try:
        with unwarned(), np.errstate(all="ignore"):
            return _read(folder, name, only)
    except Exception:  # noqa: BLE001 - it is said to nobody
        return None


def _read(folder: Path, name: Any, only: ImageForm | None) -> Any | None:
    suffix = _suffix(name)
    if suffix not in KNOWN:
        return None
    path = folder / name.strip()
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():  # of a pipe, reading has no end
        return None
    array: Any
    if suffix in _BY_PILLOW:
        array = _by_pillow(path, only)
    else:
        with path.open("rb") as file:
            array = _pgm(file, only) if suffix == ".pgm" else _npy(file, only)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or not _fits(array.shape, only):
        return None
    values = np.asarray(array, dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    return values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values


def _suffix(name: Any) -> str:
    return PurePath(name.strip()).suffix.lower() if isinstance(name, str) else ""


def _fits(shape: tuple[int, ...], only: ImageForm | None) -> bool:
    """Tell whether this is the shape of an image, and of one of the size that is asked for."""
    if 0 in shape or not (len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3))):
        return False
    return only is None or shape[:2] == (only.height, only.width)


def _npy(file: BinaryIO, only: ImageForm | None) -> Any | None:
    """Read one array; of an archive of several (NPZ) nothing is read, whatever it is called."""
    known: Any = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, _ = known[np.lib.format.read_magic(file)](file)  # other versions are of records, which no image is
    if not _fits(shape, only):
        return None
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def pillow() -> Any:
    """Return Pillow, or refuse where it is not installed."""
    try:
        from PIL import Image
    except ImportError:
        raise PreconditionFailed(
            "PNG and JPEG files are read by Pillow: pip install 'quorate[images]'. PGM and NPY need nothing"
        ) from None
    return Image


def _by_pillow(path: Path, only: ImageForm | None) -> Any | None:
    with pillow().open(path, formats=("PNG", "JPEG")) as image:  # others' readers may print, or start programs
        if only is not None and image.size != (only.width, only.height):
            return None
        grey = image.mode in ("1", "L", "LA", "I;16", "I", "F")
        return np.asarray(image.convert("L" if grey and image.mode in ("1", "LA") else None if grey else "RGB"))


def _pgm(file: BinaryIO, only: ImageForm | None) -> Any | None:
    """Read a grey image of the netpbm format, as bytes (P5) or as text (P2)."""
    head = file.read(_OF_HEADER)
    fields: list[bytes] = []
    at = 0
    while len(fields) < 4 and at < len(head):
        if head[at] in _SPACE:
            at += 1
        elif head[at : at + 1] == b"#":
            at = head.index(b"\n", at)
        else:
            end = at
            while end < len(head) and head[end] not in _SPACE:
                end += 1
            fields.append(head[at:end])
            at = end
    if not all(field.isdigit() for field in fields[1:]):
        return None
    width, height, most = (int(field) for field in fields[1:])
    if not _fits((height, width), only):
        return None
    file.seek(at)
    if fields[0] == b"P2":
        text = file.read(_OF_HEADER + _OF_A_NUMBER * height * width)
        return None if file.read(1) else np.array(text.split(), dtype=np.float64).reshape(height, width)
    if fields[0] != b"P5":
        return None
    kind = np.dtype(">u2") if most > 255 else np.dtype(np.uint8)
    content = file.read(1 + height * width * kind.itemsize)
    return np.frombuffer(content, dtype=kind, count=height * width, offset=1).reshape(height, width)


def _in_form(image: Any, form: ImageForm) -> FloatArray:
    """Bring an image of the right size to grey or to colours."""
    values: FloatArray = np.asarray(image, dtype=np.float64)
    if form.channels == 3 and values.ndim == 2:
        return np.repeat(values[:, :, None], 3, axis=2)
    if form.channels == 1 and values.ndim == 3:  # the mean of its colours: one rounding a pixel
        mean: FloatArray = (values[:, :, 0] + values[:, :, 1] + values[:, :, 2]) / 3
        return mean
    return values
