"""What somebody may put into a package who has read the checks: each is seen, and none breaks the check itself."""

import io
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.ensemble.teachers.prompted.stand_in import endpoint
from tests.export.test_check_export import covered, edited, fails, fitted
from tests.folder.test_prompted import write

from quorate.export import check, container, file_checks
from quorate.export.check import check_export, check_files
from quorate.export.container import UnsafePackageError, read_package, unpacked
from quorate.export.contents import MEANING, NEEDED, OPTIONAL, as_json
from quorate.export.file_checks import is_pickle, passed
from quorate.export.package import export_package
from quorate.findings import Outcome
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.folder.published import NAMES, zipped


def failing(files):
    return {each.code: each.evidence for each in check_files(files).checks if each.outcome is Outcome.FAILED}


@pytest.fixture(scope="module")
def honest(made):
    return read_package(made.path)


METADATA = {
    "balanced accuracy": lambda tree: tree["metrics"].update(balanced_accuracy=0.99),
    "the commonest class": lambda tree: tree["metrics"].update(accuracy_of_the_commonest_class=0.5),
    "what is found": lambda tree: tree["metrics"].update(recall=0.99),
    "the method": lambda tree: tree.update(method="the direct method"),
    "the student": lambda tree: tree.update(student="a better one"),
    "the task": lambda tree: tree.update(task="regression"),
    "the files": lambda tree: tree.update(files=["student.skops"]),
    "the time": lambda tree: tree.update(started="2020-01-01T00:00:00+00:00"),
    "one thing less": lambda tree: tree.pop("task"),
    "one thing more": lambda tree: tree.update(approved_by="the board"),
    "no comparison of ONNX": lambda tree: tree.update(onnx=None),
    "a version that is no text": lambda tree: tree.update(version={"approved": True}),
    "a truth value for a number": lambda tree: tree.update(ledger_entries=float(tree["ledger_entries"])),
}


@pytest.mark.heavy
@pytest.mark.parametrize("change", METADATA.values(), ids=METADATA)
def test_nothing_in_the_metadata_can_be_told_otherwise_than_the_values(honest, change):
    files = dict(honest)
    edited(files, "metadata.json", change)
    assert set(failing(covered(files))) - {"onnx"} == {"values"}


@pytest.mark.heavy
def test_a_figure_that_stands_twice_is_seen(honest):
    """One reader takes the first and another one the last."""
    text = honest["metadata.json"].decode()
    twice = text.replace('"accuracy":', '"accuracy": 0.99,\n    "accuracy":', 1)
    assert json.loads(twice) == json.loads(text)
    assert set(failing(covered({**honest, "metadata.json": twice.encode()}))) == {"values"}


@pytest.mark.heavy
def test_a_version_and_an_onnx_comparison_are_said_to_be_the_packers_word(honest):
    files = dict(honest)
    edited(files, "metadata.json", lambda tree: tree.update(version="7"))
    found = {each.code: each for each in check_files(covered(files)).checks}
    assert found["values"].outcome is Outcome.PASSED
    assert "are what whoever packed it says" in found["values"].evidence


def test_metadata_of_another_version_of_quorate_are_neither_passed_nor_failed(honest):
    files = dict(honest)
    edited(files, "metadata.json", lambda tree: tree.update(more="since 9.9"))
    edited(files, "versions.json", lambda tree: tree["package"].update(quorate="9.9"))
    found = {each.code: each for each in check_files(fitted(files)).checks}
    assert found["values"].outcome is Outcome.NOT_RUN
    assert "metadata.json was written by quorate 9.9" in found["values"].evidence


def header(shape, descr="'<f8'", version=1):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text


def with_part(files, content, name="0.npy"):
    return {**files, "student.skops": zipped({**unpacked(files["student.skops"]), name: content})}


OLD = pickle.dumps(print, protocol=0)
PICKLES = {
    "a byte after the full stop": OLD + b"x",
    "a line after the full stop": OLD + b"\n",
    "another first instruction": b"N0" + OLD,
    "a byte that breaks it off after it has run": OLD[:-1] + b"(S'x'\ntR\xff",
    "a new protocol without its mark": pickle.dumps(print, protocol=4)[2:],
    "an array of objects": header("(1,)", "'|O'"),
    "objects in a field": header("(1,)", "[('a', '<f8'), ('b', '|O')]", version=2),
    "objects in a field with a name of its own alphabet": header("(1,)", "[('ω', '|O')]", version=3),
    "a header that cannot be read": header("(1,)", "5"),
    "a header of a version to come": header("(1,)", version=9),
    "very many instructions": b"N" * 1_100_000,
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("content", PICKLES.values(), ids=PICKLES)
def test_a_pickle_is_seen_whatever_stands_around_it(content):
    assert is_pickle("labels.csv", content)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("shape", ["(10**15,)", "(1000000000000000,)", "(99999999999999999999999,)", "(-1,)"])
def test_the_header_of_an_array_alone_is_read(honest, shape):
    """No memory is taken for what it says that it holds."""
    found = check_files(fitted(with_part(honest, header(shape))))
    told = {each.code: each.outcome for each in found.checks}
    assert told["pickle"] is (Outcome.FAILED if "*" in shape else Outcome.PASSED)
    assert found.passed is False, "the sum in the receipt is another"


def test_what_is_no_pickle_is_not_taken_for_one(honest):
    numbers = io.BytesIO()
    array = np.array([(1.0, 2)], dtype=[("ω", "<f8"), ("b", "<i8")])
    np.lib.format.write_array(numbers, array, version=(3, 0), allow_pickle=False)
    for content in (numbers.getvalue(), b"row,label\n0,no\n", b"(c. of 1999)\n", b"N.", b""):
        assert not is_pickle("labels.csv", content)
    assert not failing(honest)


HIDDEN = {
    "behind a byte": lambda files: {**files, "labels.csv": b"#" + zipped({"0.npy": header("(1,)", "'|O'")})},
    "in a matrix": lambda files: with_part(files, b"#" + zipped({"data.npy": header("(1,)", "'|O'")}), "1.npz"),
    "deep": lambda files: with_part(files, zipped({"0.zip": zipped({"0.zip": b"#" + zipped({"a": b"1"})})}), "1.npz"),
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("tamper", HIDDEN.values(), ids=HIDDEN)
def test_a_zip_file_is_looked_into_wherever_it_begins(honest, tamper):
    assert "pickle" in failing(fitted(tamper(honest)))


@pytest.mark.heavy
def test_a_sparse_matrix_in_a_model_is_no_harm(honest):
    import scipy.sparse

    matrix = io.BytesIO()
    scipy.sparse.save_npz(matrix, scipy.sparse.eye(3, format="csr"))
    assert "pickle" not in failing(fitted(with_part(honest, matrix.getvalue(), "1.npz")))


@pytest.mark.heavy
def test_inner_zip_files_share_one_bound(honest, monkeypatch):
    bomb = zipped({"0.npy": bytes(1 << 20)})
    files = fitted({**honest, "labels.csv": bomb, "audit.json": bomb})
    monkeypatch.setattr(file_checks, "MOST_MODEL_BYTES", (1 << 20) + (1 << 19))
    assert "unpacks to more than" in failing(files)["pickle"]


def inner_graph(node, deep):
    """A graph that holds a node at some depth, each level as the branch of an If."""
    from onnx import TensorProto, helper

    out = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "inner", [], [out])
    for level in range(deep):
        held = helper.make_node("If", ["condition"], [f"out{level}"], then_branch=graph, else_branch=graph)
        out = helper.make_tensor_value_info(f"out{level}", TensorProto.FLOAT, None)
        graph = helper.make_graph([held], "inner", [], [out])
    return graph


def external_constant():
    from onnx import TensorProto, helper

    tensor = TensorProto(dims=[1], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL, name="held")
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "weights"
    return helper.make_node("Constant", [], ["constant"], value=tensor)


def onnx_model(graph):
    import onnx

    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("deep", [0, 1, 3])
def test_numbers_from_other_files_are_seen_in_every_graph(honest, monkeypatch, deep):
    """onnx's own checker, which looks at some of it, is not what the answer comes from."""
    import onnx

    monkeypatch.setattr(onnx.checker, "check_model", lambda _: None)
    files = {**honest, "student.onnx": onnx_model(inner_graph(external_constant(), deep))}
    assert failing(fitted(files))["onnx"] == "It reads numbers from other files."


def test_an_operator_of_its_own_is_seen_however_deep_it_lies(honest, monkeypatch):
    import onnx

    monkeypatch.setattr(onnx.checker, "check_model", lambda _: None)
    node = onnx.helper.make_node("Run", [], ["constant"], domain="evil")
    graph = inner_graph(node, 1)
    for _ in range(20):
        held = onnx.helper.make_node("If", ["condition"], ["constant"], then_branch=graph)
        graph = onnx.helper.make_graph([held], "inner", [], list(graph.output))
    files = {**honest, "student.onnx": onnx_model(graph)}
    assert "'evil'" in failing(fitted(files))["onnx"]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("onnx", [{"inputs": 5}, {"inputs": None}, {}, 5, {"inputs": [[]]}])
def test_inputs_of_another_form_are_a_no_and_no_crash(honest, onnx):
    files = dict(honest)
    edited(files, "metadata.json", lambda tree: tree.update(onnx=onnx))
    assert failing(fitted(files))["onnx"] == "Its inputs are not those that metadata.json tells."


@pytest.mark.parametrize("error", [MemoryError, OverflowError, TypeError, RecursionError])
def test_a_check_that_breaks_off_has_failed(honest, monkeypatch, error):
    def breaks(_):
        raise error

    monkeypatch.setattr(check, "_QUESTIONS", (("one", "Does it break?", breaks), ("two", "", lambda _: passed("."))))
    found = check_files(honest)
    assert found.passed is False
    assert [each.outcome for each in found.checks[:2]] == [Outcome.FAILED, Outcome.PASSED]
    assert error.__name__ in found.checks[0].evidence


def test_a_pipe_is_not_read(tmp_path):
    """It might never end; nobody writes into this one, so that reading it would wait for ever."""
    os.mkfifo(tmp_path / "package.zip")
    assert {each.outcome for each in check_export(tmp_path / "package.zip").checks} == {Outcome.FAILED}


def test_no_more_of_a_file_is_read_than_may_be(made, tmp_path, monkeypatch):
    size = made.path.stat().st_size
    assert read_package(made.path, most_bytes=8 << 20)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("the whole file was read"))
    monkeypatch.setattr(container, "_of_zip", lambda *_, **__: pytest.fail("it was read before its size was seen"))
    with pytest.raises(UnsafePackageError, match="more than"):
        read_package(made.path, most_bytes=size - 1)
    grown = tmp_path / "sparse.zip"
    with grown.open("wb") as file:
        file.truncate(4 << 30)
    with pytest.raises(UnsafePackageError, match="more than"):
        read_package(grown)


def test_a_link_to_a_package_is_followed(made, tmp_path):
    """Whoever gives the path means it; links inside a package are what is refused."""
    (tmp_path / "link.zip").symlink_to(made.path)
    assert fails(tmp_path / "link.zip") == set()


@pytest.mark.heavy
def test_metadata_are_made_once_for_whoever_packs_and_whoever_checks(votes_run, tmp_path):
    package = export_package(votes_run, tmp_path / "out", kind="registry", model_version="1.0.0")
    content = (package.path / "metadata.json").read_bytes()
    assert as_json(json.loads(content)) == content
    assert fails(package.path) == set()


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    with endpoint() as there:
        root = write(tmp_path_factory.mktemp("prompted") / "run", there.url)
        execute(load_run(root), command="quorate run")
    return root


@pytest.fixture(scope="module")
def package(prompted, tmp_path_factory):
    made = export_package(prompted, tmp_path_factory.mktemp("package") / "run.zip", kind="tre")
    assert check_export(made.path).passed is True
    return read_package(made.path)


def test_every_name_that_a_run_publishes_under_is_known():
    for needed in NEEDED.values():
        assert set(NAMES) <= needed | OPTIONAL | {"model_card.md"}
    assert set(NAMES) <= MEANING.keys()


@pytest.mark.heavy
def test_it_leaves_in_every_format(prompted, package, tmp_path, cli):
    assert "prompt.json" in package
    assert export_package(prompted, tmp_path / "registry", kind="registry").files.count("prompt.json") == 1
    assert cli("export", prompted, "--to", tmp_path / "plain")[0] == 0
    assert cli("check-export", tmp_path / "registry")[0] == 0
    assert fails(tmp_path / "plain") == set(), "its prices cannot be checked, as those of no plain export can"


@pytest.mark.heavy
def test_the_cover_sheet_says_what_it_is(package):
    sheet = package["COVER-SHEET.md"].decode()
    assert "prompt.json holds a few public rows as text, with their released labels" in sheet
    assert "| `prompt.json` | the student as a prompt" in sheet


@pytest.mark.heavy
def test_a_prompt_that_says_something_else_is_seen(package):
    """By the values, whatever the receipt says; another row or label is seen by the sum in the receipt."""
    changes = {
        "another promise": lambda tree: tree["guarantee"].update(epsilon=0.1),
        "other classes": lambda tree: tree["classes"].append("perhaps"),
        "more examples than labels": lambda tree: tree.update(examples=tree["examples"] * 100),
        "another form": lambda tree: tree.update(format="quorate prompt 2"),
    }
    for what, change in changes.items():
        files = dict(package)
        edited(files, "prompt.json", change)
        edited(files, "receipt.json", lambda tree: tree["published"].pop("prompt.json"))
        found = {each.code: each for each in check_files(fitted(files)).checks}
        assert found["values"].outcome is Outcome.FAILED, what
        assert found["values"].evidence.startswith("prompt.json "), what
        assert found["receipt"].outcome is Outcome.FAILED, "the run did not publish it"
    files = dict(package)
    edited(files, "prompt.json", lambda tree: tree["examples"][0].update(row=json.dumps("a private row")))
    assert "receipt" in {each.code for each in check_files(fitted(files)).checks if each.outcome is Outcome.FAILED}
