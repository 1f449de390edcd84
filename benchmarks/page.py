"""The page of what was measured, and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorate.report import Axis, Chart

HEAD = """# Benchmarks

What quorate costs beside a named peer: the same input, back to back, in one process with one BLAS thread. What is
compared is CPU time, the median of the paired ratios; 2 means that ours takes half of the peer's time. Both results are
compared, and a row whose results differ is no row. Memory is what this process took beside what it had, without its
workers. Made by `python -m benchmarks --page docs`, or with the names of some rows, which leaves out all others.

"""


def write_page(folder: Path, result: dict[str, Any]) -> None:
    """Write ``benchmarks.md`` and ``figures/benchmarks-*.svg`` into a folder."""
    pairs = [row for row in result["rows"] if "ratio" in row]
    curves = [row for row in result["rows"] if "exponent" in row]
    parts = [HEAD, ", ".join(f"{name} {each}" for name, each in result["versions"].items()), ".\n\n"]
    if pairs:
        parts += [_table_of_pairs(pairs), "\n"]
    if curves:
        parts += [_table_of_curves(curves), "\n![CPU time over size](figures/benchmarks-growth.svg)\n"]
        figures = folder / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        (figures / "benchmarks-growth.svg").write_text(_growth(curves), encoding="utf-8")
    (folder / "benchmarks.md").write_text("".join(parts), encoding="utf-8")


def _table_of_pairs(pairs: list[dict[str, Any]]) -> str:
    lines = [
        "| what | peer | times as fast | of the rounds | hoped for | CPU, ours | memory, ours | memory, peer |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row['name']} | {row['peer']} | **{row['ratio']:.2f}** | {row['least']:.2f} to {row['most']:.2f} "
        f"| {row['at_least']:g} | {row['seconds']:.3g} s | {row['megabytes']:.0f} MB | {row['peer_megabytes']:.0f} MB |"
        for row in pairs
    ]
    return "\n".join(lines) + "\n"


def _table_of_curves(curves: list[dict[str, Any]]) -> str:
    lines = [
        "| what grows | with | from | to | exponent | hoped for, at most |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row['name']} | {row['of']} | {row['sizes'][0]:,} | {row['sizes'][-1]:,} | {row['exponent']:.2f} "
        f"| {row['at_most']:g} |"
        for row in curves
    ]
    return "\n".join(lines) + "\n"


def _growth(curves: list[dict[str, Any]]) -> str:
    sizes = [size for row in curves for size in row["sizes"]]
    seconds = [each for row in curves for each in row["seconds"]]
    chart = Chart(
        "CPU time over size",
        Axis("size", min(sizes), max(sizes), log=True),
        Axis("seconds of CPU", min(seconds) / 1.5, max(seconds) * 1e4, log=True),  # room for the legend above
        "; ".join(f"{row['name']} grows as {row['of']} to the power {row['exponent']:.2f}" for row in curves) + ".",
        legend="top left",
    )
    for style, row in enumerate(curves[:7]):
        chart.line(
            row["sizes"], row["seconds"], f"{row['name']} ({row['of']}^{row['exponent']:.2f})", style, marks=None
        )
    return chart.written()
