"""``quorate check-export``: what a reviewer looks at before a package leaves, or when it arrives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.options import as_json, print_json

if TYPE_CHECKING:
    from quorate.export.check import ExportCheck

_MARKS = {"passed": "✓", "failed": "✗", "not run": "–"}


@click.command(name="check-export")
@click.argument("package", type=click.Path(path_type=Path))
@click.option("--digest", metavar="SHA256", help="The sum of the manifest, as the owner sent it by another way.")
@click.option(
    "--ledger",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What quorate ledger export wrote, for those who may see it: the chain is replayed, the charges compared.",
)
@as_json
def command(package: Path, digest: str | None, ledger: Path | None, as_json: bool) -> None:
    """Check PACKAGE, a .zip file or folder from quorate export, without the private side and without the ledger.

    Sums are computed again, prices are computed again from the events that were charged, the report is written again
    from its values, and models are opened without trust. Nothing is unpacked to a disk. Exit code 4 if a check failed,
    or if one that is needed could not run: the package is not passed then.

    --ledger binds what was charged: events, amounts, whose data they protect with which caveats, and the head of the
    ledger. The ledger holds no sum of a file. A package that was changed as a whole, consistently, by somebody who
    knows quorate, say with another model, labels or accuracy, is seen by --digest alone.
    """
    from quorate.export.check import check_export

    result = check_export(package, ledger=ledger, digest=digest)
    if as_json:
        print_json(result.tree())
    else:
        for check in result.checks:
            click.echo(f"{_MARKS.get(check.outcome, '–')} {check.outcome:<8} {check.words}")
            click.echo(f"           {check.evidence}")
            if check.remedy is not None:
                click.echo(f"           {check.remedy}")
        click.echo(f"\n{package}: {_verdict(result)}")
        if result.digest is not None:
            click.echo(f"sum of the manifest: {result.digest}")
        click.echo(result.counted)
    if not result.passed:
        sys.exit(4)


def _verdict(result: ExportCheck) -> str:
    if result.failed:
        return "a check failed: do not accept this package"
    if result.undecided:
        first = result.undecided[0]
        return f"not passed, since a check that is needed did not run ({first.code}). {first.remedy or ''}".rstrip()
    return "no check failed"
