"""``quorate export``: what may leave the building."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.arguments import for_shell
from quorate.cli.options import as_json, print_json, run_folder


@click.command(name="export")
@run_folder
@click.option(
    "--to", "destination", type=click.Path(path_type=Path), required=True, help="A new folder, or a .zip file."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["files", "tre", "registry"]),
    default="files",
    show_default=True,
    help="The published files; a package for the airlock of a trusted research environment; or for a model registry.",
)
@click.option(
    "--model",
    type=click.Choice(["skops", "onnx", "both"]),
    default="skops",
    show_default=True,
    help="The student for scikit-learn, for programs without Python, or both. ONNX needs the extra onnx.",
)
@click.option("--model-version", default="1", show_default=True, help="Version of the model in a package's metadata.")
@as_json
def command(run: Path, destination: Path, kind: str, model: str, model_version: str, as_json: bool) -> None:
    """Copy labels, student, guarantee and report of RUN into a new folder, with their SHA-256 sums.

    Each is compared with the sum that the run noted on its private side when it wrote it; a file that differs, or is a
    link, is refused. What else lies in public/ stays there. A run with seeded noise is refused.

    --format tre adds a cover sheet for an output checker, a receipt of the ledger and the versions. Send the sum that
    is printed by another way: whoever receives the package compares it, and runs quorate check-export.
    """
    from quorate.errors import InvalidParameter
    from quorate.export.package import export_files, export_package
    from quorate.folder.published import not_published

    if kind == "files" and destination.suffix == ".zip":
        raise InvalidParameter("--to must be a folder for --format files; --format tre and registry write a .zip file")
    left, digest = not_published(run), None
    if kind == "files":
        written = [str(path) for path in export_files(run, destination, model=model)]
    else:
        package = export_package(run, destination, kind=kind, model=model, model_version=model_version)
        written, digest = [f"{destination}/{name}" for name in package.files], package.digest
    if as_json:
        print_json({"files": written, "left": left, **({} if digest is None else {"manifest_sha256": digest})})
        return
    if left:
        click.echo(f"not copied, since this run did not publish it: {', '.join(map(repr, left))}", err=True)
    for path in written:
        click.echo(f"wrote {path}")
    if digest is not None:
        click.echo(f"sum of the manifest: {digest}")
        click.echo(
            f"send it by another way; whoever receives the package runs: quorate check-export {for_shell(destination)}"
        )
