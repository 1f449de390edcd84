"""Take the pictures of the gallery with Chromium: ``python docs/take_pictures.py RUN``, for a finished run.

``quorate demo`` makes one. The page of the service needs a service; save it as ``service.html`` in the folder of the
run, and it is taken too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).parent / "figures" / "gallery"


def main(run: Path) -> None:
    report = run / "public" / "report.html"
    with tempfile.TemporaryDirectory() as scratch:
        plan, narrow = Path(scratch) / "plan.html", Path(scratch) / "narrow.html"
        subprocess.run(["quorate", "plan", str(run), "--html", str(plan)], check=True)
        narrow.write_text(section(report.read_text(encoding="utf-8"), "utility"), encoding="utf-8")
        take(report, "report", 860, 1480)
        take(narrow, "report-narrow", 400, 660)
        take(plan, "plan", 1000, 960)
        if (run / "service.html").exists():
            take(run / "service.html", "service", 860, 900)


def section(page: str, name: str) -> str:
    """One section of a report, with its style."""
    head = page[: page.index("<body>") + len("<body>")]
    start = page.rindex("<section", 0, page.index(f'id="{name}"') + 1)
    return f"{head}<main>{page[start : page.index('</section>', start)]}</section></main></body></html>"


def take(page: Path, name: str, width: int, height: int) -> None:
    how = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
    command = ["chromium", *how, f"--screenshot={PICTURES / name}.png", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
