"""Made-up digits in the published format, with writers."""

import gzip

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Ten kinds of strokes, some noise, in the published format: 3,000 to train on, 300 of them public, 600 to test."""
    for experiment in ("mnist", "writers"):
        monkeypatch.setattr(f"quorate.experiments.{experiment}.N_PUBLIC", 300)
    rng = np.random.default_rng(0)
    kinds = rng.uniform(0, 1, (10, 784)) ** 6
    (tmp_path / "mnist").mkdir()
    for name, n in (("train", 3_000), ("t10k", 600)):
        labels = rng.integers(0, 10, n).astype(np.uint8)
        images = np.clip(kinds[labels] + rng.normal(scale=0.15, size=(n, 784)), 0, 1) * 255
        head = n.to_bytes(4, "big")
        pixels = b"\x00\x00\x08\x03" + head + (28).to_bytes(4, "big") * 2 + images.astype(np.uint8).tobytes()
        (tmp_path / "mnist" / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(pixels, 1))
        told = b"\x00\x00\x08\x01" + head + labels.tobytes()
        (tmp_path / "mnist" / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(told, 1))
    np.savez(tmp_path / "mnist" / "writers.npz", train=np.arange(3_000) % 100, test=np.arange(600) % 20)
    return tmp_path
