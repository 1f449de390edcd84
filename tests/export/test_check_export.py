"""A reviewer's check passes an honest package, and catches every one that was tampered with.

Each tampering is made by somebody who knows the format: where it says so, the manifest is written anew to fit.
"""

import io
import json
import pickle
import shutil
import stat
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from quorate.accounting.guarantee import SEEDED
from quorate.cli import main
from quorate.deferred import skops
from quorate.export import check, container, package
from quorate.export.check import check_export
from quorate.export.container import UnsafePackageError, read_package
from quorate.export.contents import ExportReceipt, as_json, sum_of
from quorate.export.cover import cover_sheet
from quorate.export.package import export_package
from quorate.findings import Outcome
from quorate.folder.published import zipped
from quorate.report import Facts, model_card, render_html, render_json


def outcomes(path, **how):
    return {check.code: check.outcome for check in check_export(path, **how).checks}


def fails(path):
    return {code for code, outcome in outcomes(path).items() if outcome is Outcome.FAILED}


def fitted(files):
    """The files with a manifest that fits them."""
    tree = json.loads(files["manifest.json"])
    inside = {name: content for name, content in files.items() if name != "manifest.json"}
    tree["sha256"] = {name: sum_of(content) for name, content in inside.items()}
    tree["bytes"] = {name: len(content) for name, content in inside.items()}
    return {**inside, "manifest.json": json.dumps(tree).encode()}


def covered(files):
    """The files with a cover sheet, and a manifest, that fit them."""
    facts = Facts.from_json(files["facts.json"].decode())
    receipt = ExportReceipt.from_json(files["receipt.json"].decode())
    others = {name: content for name, content in files.items() if name not in ("COVER-SHEET.md", "manifest.json")}
    return fitted({**files, "COVER-SHEET.md": cover_sheet(facts, receipt, others).encode()})


def edited(files, name, change):
    tree = json.loads(files[name])
    change(tree)
    files[name] = as_json(tree)


def changed(name, change):
    """What changes one file, and the manifest with it."""

    def tamper(files):
        edited(files, name, change)
        return fitted(files)

    return tamper


def packed(tmp_path, files):
    path = tmp_path / "tampered.zip"
    path.write_bytes(zipped(files))
    return path


def exported(cli, votes_run, tmp_path):
    """The ledger of a copy of the run, as its owner writes it to a file."""
    run, path = shutil.copytree(votes_run, tmp_path / "copy"), tmp_path / "ledger.json"
    assert cli("ledger", "export", run, "--to", path)[0] == 0
    return path


@pytest.mark.heavy
def test_an_honest_package_passes_and_says_what_it_did_not_look_at(made):
    found = outcomes(made.path)
    assert {code for code, outcome in found.items() if outcome is not Outcome.PASSED} == {"chain", "digest"}
    assert found["chain"] is found["digest"] is Outcome.NOT_RUN
    assert {"container", "manifest", "sums", "files", "pickle", "schema", "seed", "values", "prices", "receipt",
            "versions", "skops", "onnx"} == found.keys() - {"chain", "digest"}  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("known", "told", "never"),
    [
        ({"n_records_from": "read"}, "It was read off the data and is treated as public", "is not public"),
        ({"n_records_from": "declared"}, "this package does not state it. Ask", "read off the data"),
        ({"n_records": 300}, "The number was declared by the owner", "not declared"),
    ],
)
def test_a_number_of_units_that_is_treated_as_public_is_not_called_secret(made, known, told, never):
    files = read_package(made.path)
    facts = Facts.from_json(files["facts.json"].decode())
    facts = replace(facts, setup=replace(facts.setup, **{"n_records": None, **known}))
    sheet = cover_sheet(facts, ExportReceipt.from_json(files["receipt.json"].decode()), files)
    [said] = [line for line in sheet.splitlines() if line.startswith("**On how many private units")]
    assert told in said
    assert never not in said


@pytest.mark.heavy
def test_the_sum_that_was_sent_and_the_ledger_are_compared_where_they_are_given(made, votes_run, tmp_path, cli):
    found = outcomes(made.path, ledger=exported(cli, votes_run, tmp_path), digest=made.digest.upper())
    assert set(found.values()) == {Outcome.PASSED}
    assert outcomes(made.path, digest="0" * 64)["digest"] is Outcome.FAILED


@pytest.mark.heavy
def test_a_ledger_that_was_altered_or_is_of_another_run_is_seen(made, votes_run, tmp_path, cli):
    whole = json.loads(exported(cli, votes_run, tmp_path).read_text())
    for number, change in enumerate((
        lambda entries: entries.pop(),
        lambda entries: entries[2].update(time="2020-01-01T00:00:00.000000Z"),
        lambda entries: entries.__delitem__(slice(2, None)),
    )):  # fmt: skip
        other = json.loads(json.dumps(whole))
        change(other["entries"])
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(other))
        assert outcomes(made.path, ledger=path)["chain"] is Outcome.FAILED


@pytest.mark.heavy
def test_the_command_says_it_in_words_and_as_json_with_its_exit_code(made, tmp_path, cli):
    code, said, _ = cli("check-export", made.path)
    assert code == 0
    assert "no check failed" in said
    assert made.digest in said
    ended = list(outcomes(made.path).values())
    told = f"{ended.count(Outcome.PASSED)} passed, 0 failed, {ended.count(Outcome.NOT_RUN)} not run"
    assert said.splitlines()[-1] == told
    assert len(ended) == ended.count(Outcome.PASSED) + ended.count(Outcome.NOT_RUN)
    files = read_package(made.path)
    files["labels.csv"] += b"\n"
    (tmp_path / "bad.zip").write_bytes(zipped(files))
    code, said, _ = cli("check-export", tmp_path / "bad.zip")
    assert code == 4
    assert "✗ failed   Is every file, byte for byte, the one that the manifest names?" in said
    assert "'labels.csv'" in said
    assert " passed, 3 failed, " in said.splitlines()[-1]
    code, said, _ = cli("check-export", tmp_path / "bad.zip", "--json")
    assert code == 4
    tree = json.loads(said)
    assert tree["passed"] is False
    assert {each["code"] for each in tree["checks"] if each["outcome"] == "failed"} == {"sums", "receipt", "values"}
    code, _, told = cli("check-export", tmp_path / "nowhere.zip")
    assert (code, "there is no package at" in told) == (4, True)


@pytest.mark.heavy
def test_it_needs_neither_the_run_nor_a_place_to_write(made, tmp_path, cli):
    alone = shutil.copy(made.path, tmp_path / "package.zip")
    before = sorted(tmp_path.rglob("*"))
    assert cli("check-export", alone)[0] == 0
    assert sorted(tmp_path.rglob("*")) == before


def one_byte_of_the_model(files):
    content = bytearray(files["student.skops"])
    content[len(content) // 2] ^= 1
    return {**files, "student.skops": bytes(content)}


def rewritten(files, tree):
    """All that is made from the values, with the sums in the receipt and the manifest, from other values."""
    facts = Facts.from_json(json.dumps(tree))
    files["facts.json"] = render_json(facts).encode()
    files["guarantee.json"] = (facts.guarantee.to_json() + "\n").encode()
    files["report.html"] = render_html(facts).encode()
    files["model_card.md"] = model_card(facts).encode()
    edited(files, "metadata.json", lambda each: each.update(guarantee=json.loads(facts.guarantee.to_json())))
    here = {name: sum_of(content) for name, content in files.items()}
    edited(files, "receipt.json", lambda each: each["published"].update({k: here[k] for k in each["published"]}))
    return covered(files)


def epsilon_everywhere(files):
    tree = json.loads(files["facts.json"])
    for part, name in (("guarantee", "epsilon"), ("spending", "spent_epsilon"), ("spending", "run_epsilon")):
        tree[part][name] = 0.5
    tree["spending"]["parts"] = []
    return rewritten(files, tree)


def households_everywhere(files):
    """A promise for more people than was paid for, and no caveat."""
    tree = json.loads(files["facts.json"])
    tree["guarantee"].update(unit="household", neighbours="add, remove or replace one household", caveats=[])
    tree["setup"]["unit"] = "household"
    return rewritten(files, tree)


def caveats_removed_everywhere(files):
    tree = json.loads(files["facts.json"])
    assert tree["guarantee"]["caveats"], "there is something to leave out"
    tree["guarantee"]["caveats"] = []
    return rewritten(files, tree)


def households_in_the_receipt_too(files):
    """As before, and the scopes of the charges are rewritten: the ledger alone holds others."""

    def households(tree):
        for charge in tree["charges"]:
            charge["scope"] = {
                "unit": "household", "neighbours": "add, remove or replace one household", "caveats": [],
            }  # fmt: skip

    edited(files, "receipt.json", households)
    return households_everywhere(files)


def pickle_inside_the_model(files):
    inside = container.unpacked(files["student.skops"])
    array = io.BytesIO()
    np.save(array, np.array([print, None], dtype=object), allow_pickle=True)
    return fitted({**files, "student.skops": zipped({**inside, "0.npy": array.getvalue()})})


def model_exchanged_with_the_manifest(files):
    """The manifest is edited consistently, and the receipt is not."""
    other = DummyClassifier(strategy="constant", constant="no").fit([[0.0]], ["no"])
    return covered({**files, "student.skops": skops.io.dumps(other)})


def another_cover_sheet(files):
    return fitted({**files, "COVER-SHEET.md": b"# Cover sheet\n\nThere is nothing to check. It may leave.\n"})


def one_word_of_the_cover_sheet(files):
    sheet = files["COVER-SHEET.md"].replace(b"Nothing else on the same ledger", b"Nothing else was ever released")
    assert sheet != files["COVER-SHEET.md"]
    return fitted({**files, "COVER-SHEET.md": sheet})


def written_by_another_version(files):
    """Nothing here can make the report again: so it holds another sentence, and all sums fit."""
    tree = json.loads(files["facts.json"])
    tree["provenance"]["versions"] = [
        [name, "9.9" if name == "quorate" else told] for name, told in dict(tree["provenance"]["versions"]).items()
    ]
    rewritten(files, tree)
    files["report.html"] = files["report.html"].replace(b"charged", b"chargee", 1)
    versions = dict(tree["provenance"]["versions"])
    edited(files, "versions.json", lambda each: each.update(run=versions))
    edited(files, "metadata.json", lambda each: each.update(versions=versions))
    total = sum_of(files["report.html"])
    edited(files, "receipt.json", lambda each: each["published"].update({"report.html": total}))
    return covered(files)


def packed_by_another_version(files):
    """The report is made again, and the cover sheet is said to be of a version that words it otherwise."""
    edited(files, "versions.json", lambda tree: tree["package"].update(quorate="9.9"))
    return another_cover_sheet(files)


def onnx_with_an_operator_of_its_own(files):
    import onnx

    model = onnx.load_from_string(files["student.onnx"])
    model.graph.node[0].domain = "evil"
    opset = model.opset_import.add()
    opset.domain, opset.version = "evil", 1
    return fitted({**files, "student.onnx": model.SerializeToString()})


def onnx_that_reads_other_files(files):
    import onnx

    model = onnx.load_from_string(files["student.onnx"])
    tensor = next(each for each in model.graph.initializer if each.data_type == onnx.TensorProto.DOUBLE)
    tensor.ClearField("double_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"
    return fitted({**files, "student.onnx": model.SerializeToString()})


def model_that_wants_trust():
    return skops.io.dumps(DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]))


def without(files, name):
    return fitted({other: content for other, content in files.items() if other != name})


def halved(charge):
    charge["amounts"]["epsilon_e9"] //= 2


def of_the_future(files):
    edited(files, "manifest.json", lambda tree: tree.update(format="quorate export 2"))
    return files


NOTES = b"patients of ward 7"
TAMPERED = {
    "one byte of the model": ("sums", one_byte_of_the_model),
    "ε in the guarantee": ("prices", changed("guarantee.json", lambda tree: tree.update(epsilon=0.5))),
    "ε everywhere": ("prices", epsilon_everywhere),
    "households everywhere": ("prices", households_everywhere),
    "caveats removed everywhere": ("prices", caveats_removed_everywhere),
    "events removed": ("prices", changed("receipt.json", lambda tree: tree.update(charges=[]))),
    "a charge below its price": ("prices", changed("receipt.json", lambda tree: halved(tree["charges"][0]))),
    "a receipt of another run": (
        "receipt", changed("receipt.json", lambda tree: tree["receipt"].update(head_hash="ab" * 32)),
    ),
    "an extra file": ("files", lambda files: {**files, "notes.txt": NOTES}),
    "an extra file in the manifest": ("files", lambda files: fitted({**files, "votes.npy": NOTES})),
    "a file missing": ("files", lambda files: without(files, "report.html")),
    "a pickle as a file": ("pickle", lambda files: fitted({**files, "student.pkl": pickle.dumps([1, 2])})),
    "a pickle under another name": ("pickle", lambda files: fitted({**files, "labels.csv": pickle.dumps(print)})),
    "an old pickle under another name": (
        "pickle", lambda files: fitted({**files, "labels.csv": pickle.dumps(print, protocol=0)}),
    ),
    "a pickle inside the model": ("pickle", pickle_inside_the_model),
    "a model exchanged with the manifest": ("receipt", model_exchanged_with_the_manifest),
    "a model that wants trust": ("skops", lambda files: fitted({**files, "student.skops": model_that_wants_trust()})),
    "a seeded run": ("seed", changed("guarantee.json", lambda tree: tree["caveats"].insert(0, SEEDED))),
    "a seeded charge": ("seed", changed("receipt.json", lambda tree: tree["charges"][0].update(seeded=True))),
    "a schema of the future": ("schema", changed("guarantee.json", lambda tree: tree.update(schema_version=2))),
    "a manifest of the future": ("manifest", of_the_future),
    "a receipt of the future": ("receipt", changed("receipt.json", lambda tree: tree.update(format="receipt 2"))),
    "a better accuracy": ("values", changed("metadata.json", lambda tree: tree["metrics"].update(accuracy=0.99))),
    "kinder words in the report": (
        "values",
        lambda files: fitted({**files, "report.html": files["report.html"].replace(b"charged", b"chargee", 1)}),
    ),
    "another cover sheet": ("values", another_cover_sheet),
    "one word of the cover sheet": ("values", one_word_of_the_cover_sheet),
    "other versions": ("versions", changed("versions.json", lambda tree: tree["run"].update(quorate="9.9"))),
    "ONNX with an operator of its own": ("onnx", onnx_with_an_operator_of_its_own),
    "ONNX that reads other files": ("onnx", onnx_that_reads_other_files),
    "ONNX with other inputs": (
        "onnx", changed("metadata.json", lambda tree: tree["onnx"].update(inputs={"age": "number"})),
    ),
}  # fmt: skip


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("code", "tamper"), TAMPERED.values(), ids=TAMPERED)
def test_a_package_that_was_tampered_with_is_caught_by_the_check_that_is_for_it(made, tmp_path, code, tamper):
    assert code in fails(packed(tmp_path, tamper(read_package(made.path))))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("tamper", [epsilon_everywhere, households_everywhere, caveats_removed_everywhere])
def test_only_prices_stand_against_a_promise_that_was_changed_everywhere(made, tmp_path, tamper):
    """What is computed again is the last thing in the way: without it the lie would pass, as the twin shows."""
    assert fails(packed(tmp_path, tamper(read_package(made.path)))) == {"prices"}


@pytest.mark.heavy
def test_a_model_exchanged_with_its_sums_passes_with_the_ledger_and_the_sum_that_was_sent_alone_sees_it(
    made, votes_run, tmp_path, cli
):
    """What the help says that the ledger cannot bind."""
    files = model_exchanged_with_the_manifest(read_package(made.path))
    total = sum_of(files["student.skops"])
    edited(files, "receipt.json", lambda tree: tree["published"].update({"student.skops": total}))
    del files["student.onnx"]
    edited(files, "metadata.json", lambda tree: tree.update(files=["student.skops"], onnx=None))
    path, ledger = packed(tmp_path, covered(files)), exported(cli, votes_run, tmp_path)
    found = check_export(path, ledger=ledger)
    assert found.passed is True
    chain = next(check for check in found.checks if check.code == "chain")
    assert "It holds no sum of a file" in chain.evidence
    assert {each.code for each in check_export(path, ledger=ledger, digest=made.digest).checks
            if each.outcome is Outcome.FAILED} == {"digest"}  # fmt: skip
    assert "is seen by --digest alone" in cli("check-export", "--help")[1].words


def test_another_onnx_model_is_told_to_be_linked_by_the_sum_alone(made, tmp_path):
    import onnx

    files = read_package(made.path)
    model = onnx.load_from_string(files["student.onnx"])
    model.doc_string = "another"
    path = packed(tmp_path, covered({**files, "student.onnx": model.SerializeToString()}))
    found = check_export(path, digest=made.digest)
    assert {check.code for check in found.checks if check.outcome is Outcome.FAILED} == {"digest"}
    told = next(check.evidence for check in found.checks if check.code == "onnx")
    assert "nothing here links it to student.skops" in told
    assert "seen by --digest alone" in told


@pytest.mark.heavy
@pytest.mark.parametrize("tamper", [written_by_another_version, packed_by_another_version])
def test_a_check_that_is_needed_and_did_not_run_is_not_passed(made, tmp_path, cli, tamper):
    path = packed(tmp_path, tamper(read_package(made.path)))
    assert fails(path) == set()
    assert outcomes(path)["values"] is Outcome.NOT_RUN
    code, said, _ = cli("check-export", path)
    assert code == 4
    assert "not passed, since a check that is needed did not run (values). Check it with quorate 9.9" in said
    assert "no check failed" not in said
    code, said, _ = cli("check-export", path, "--json")
    assert (code, json.loads(said)["passed"]) == (4, None)


@pytest.mark.heavy
def test_a_model_in_one_file_passes_without_the_other(made, votes_run, tmp_path):
    """What need not be there is not missed; what is there and cannot be looked at is."""
    alone = export_package(votes_run, tmp_path / "alone.zip", kind="tre")
    assert check_export(alone.path).passed is True
    assert {check.code for check in check_export(alone.path).checks if check.outcome is Outcome.NOT_RUN} == {
        "onnx", "chain", "digest",
    }  # fmt: skip


def test_without_the_package_onnx_a_file_of_it_is_not_passed(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    found = check_export(made.path)
    assert found.passed is None
    assert [check.code for check in found.undecided] == ["onnx"]


@pytest.mark.heavy
def test_the_ledger_holds_the_scopes_that_a_receipt_cannot_change(made, votes_run, tmp_path, cli):
    path = packed(tmp_path, households_in_the_receipt_too(read_package(made.path)))
    assert fails(path) == set(), "without the ledger, and without the sum, nothing else is known"
    ledger = exported(cli, votes_run, tmp_path)
    found = outcomes(path, ledger=ledger)
    assert {code for code, outcome in found.items() if outcome is Outcome.FAILED} == {"chain"}
    path = packed(tmp_path, households_everywhere(read_package(made.path)))
    assert outcomes(path, ledger=ledger)["chain"] is Outcome.FAILED


def test_without_the_receipt_an_exchanged_model_would_pass(made, tmp_path, monkeypatch):
    """The twin: a check that looks at the manifest alone."""
    path = packed(tmp_path, model_exchanged_with_the_manifest(read_package(made.path)))
    assert fails(path) == {"receipt"}
    blind = tuple(each for each in check._QUESTIONS if each[0] != "receipt")
    monkeypatch.setattr(check, "_QUESTIONS", blind)
    assert fails(path) == set()


def with_member(files, name, content, *, mode=stat.S_IFREG | 0o644):
    written = io.BytesIO(zipped(files))
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED) as archive:
        member = zipfile.ZipInfo(name)
        member.external_attr = mode << 16
        archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


HARMFUL = {
    "a path that climbs": lambda files: with_member(files, "../outside.txt", b"1"),
    "a path that climbs from a folder": lambda files: with_member(files, "a/../../outside.txt", b"1"),
    "a path from the root": lambda files: with_member(files, "/etc/outside.txt", b"1"),
    "a path of another system": lambda files: with_member(files, "..\\outside.txt", b"1"),
    "a drive": lambda files: with_member(files, "C:outside.txt", b"1"),
    "a folder": lambda files: with_member(files, "private/votes.stage", b"1"),
    "a symbolic link": lambda files: with_member(files, "link", b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a device": lambda files: with_member(files, "device", b"", mode=stat.S_IFCHR | 0o600),
    "a name twice": lambda files: with_member(files, "labels.csv", b"other"),
    "a bomb": lambda files: with_member(files, "labels2.csv", bytes(3 << 20)),
    "very many files": lambda files: zipped({f"{number}.txt": b"" for number in range(1001)}),
    "no zip file": lambda files: b"PK\x03\x04 nothing more",
    "half a zip file": lambda files: zipped(files)[:-200],
}


@pytest.mark.default_cases(3)
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("harm", HARMFUL.values(), ids=HARMFUL)
def test_a_container_that_could_do_harm_is_not_read(made, tmp_path, harm):
    path = tmp_path / "harmful.zip"
    path.write_bytes(harm(read_package(made.path)))
    before = sorted(tmp_path.rglob("*"))
    found = outcomes(path, most_bytes=2 << 20)
    assert found == {"container": Outcome.FAILED}
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_is_not_unpacked_beyond_the_bound(tmp_path, monkeypatch):
    """Whatever its headers say: what is counted is what comes out."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.csv", bytes(8 << 20))
    asked = []
    real = container._bounded

    def counting(file, most):
        found = real(file, most)
        asked.append(len(found))
        return found

    monkeypatch.setattr(container, "_bounded", counting)
    (tmp_path / "bomb.zip").write_bytes(bomb.getvalue())
    with pytest.raises(UnsafePackageError, match="more than 1,000,000 bytes"):
        read_package(tmp_path / "bomb.zip", most_bytes=1_000_000)
    assert asked == [1_000_001]


def test_a_folder_with_a_link_or_a_folder_in_it_is_not_read(made, tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    for name, content in read_package(made.path).items():
        (folder / name).write_bytes(content)
    assert fails(folder) == set()
    (folder / "link").symlink_to("/etc/passwd")
    assert outcomes(folder) == {"container": Outcome.FAILED}
    (folder / "link").unlink()
    (folder / "more").mkdir()
    assert outcomes(folder) == {"container": Outcome.FAILED}


def test_a_package_that_its_own_check_would_fail_is_not_written(votes_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(package, "cover_sheet", lambda *_: "cbuiltins\nprint\n.")
    with pytest.raises(SystemExit) as stop:
        main(["export", str(votes_run), "--format", "tre", "--to", str(tmp_path / "out.zip")])
    assert stop.value.code == 4
    assert "would not pass its own check and was not written" in capsys.readouterr().err
    assert not (tmp_path / "out.zip").exists()


@pytest.mark.heavy
def test_the_same_run_gives_the_same_bytes(votes_run, made, tmp_path):
    again = export_package(votes_run, tmp_path / "again.zip", kind="tre", model="both")
    assert again.digest == made.digest
    assert again.path.read_bytes() == made.path.read_bytes()
