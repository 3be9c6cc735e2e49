"""`compress export` rounds nothing; `compress compare` shows what the reports say."""

import json
import shutil

import numpy as np
import onnx
import pytest
from conftest import ROOT

QUICKSTART = ROOT / "configs/pipelines/quickstart.yaml"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    import subprocess

    from conftest import find_program

    folder = tmp_path_factory.mktemp("runs")
    wide = ["--set", "budget.size=1 MB", "--set", "budget.latency=10 s", "--set", "budget.metric_drop=50 pt"]
    for name, scheme in (("eight", "w8a8_c"), ("four", "w4a8_c")):
        done = subprocess.run(
            [find_program(), "run", QUICKSTART, "--output", folder / name, *wide,
             "--set", f"stages.search.schemes=[{scheme}]"], capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode in (0, 5), done.stderr  # 4 bits may lose more than the gate of the file allows
    return folder


def test_a_bundle_as_onnx_has_the_same_outputs(compress_run, two_runs, tmp_path):
    bundle = two_runs / "eight" / "model.ctkb"
    done = compress_run("export", bundle, "--format", "onnx_qdq", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.error
    written = json.loads(done.out)["files"][0]
    path = tmp_path / "out" / written["path"]
    assert path.stat().st_size == written["bytes"]
    onnx.checker.check_model(str(path))
    import compress

    graph, back = compress.load(bundle), compress.load(path)
    name, (_, shape) = next(iter(graph.inputs.items()))
    x = np.random.default_rng(0).random([4 if d < 0 else d for d in shape], dtype=np.float32)
    for a, b in zip(graph.run({name: x}).values(), back.run({name: x}).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_of_others_is_overwritten(compress_run, tmp_path):
    source = ROOT / "configs/quickstart/digits_cnn.onnx"
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    done = compress_run("export", source, "--format", "onnx", "--output", folder)
    assert done.code == 2 and "--force" in done.error
    model = folder / "model.onnx"
    shutil.copy(source, model)
    before = model.read_bytes()
    done = compress_run("export", model, "--format", "onnx", "--output", folder, "--force")
    assert done.code == 2 and "read from" in done.error
    assert model.read_bytes() == before and (folder / "thesis.txt").exists()


def test_what_no_format_holds_is_an_error(compress_run, tmp_path):
    source = ROOT / "configs/quickstart/digits_cnn.onnx"
    done = compress_run("export", source, "--format", "gguf", "--output", tmp_path / "out")
    assert done.code == 3
    assert not (tmp_path / "out").exists()
    done = compress_run("export", source, "--format", "onnxx", "--output", tmp_path / "out")
    assert done.code == 2 and "onnx" in done.error


def test_runs_side_by_side(compress_run, two_runs):
    runs = [two_runs / "eight", two_runs / "four"]
    done = compress_run("compare", *runs, "--json")
    assert done.code == 0, done.error
    found = json.loads(done.out)
    reports = [json.loads((run / "report.json").read_text()) for run in runs]
    for row, report in zip(found["runs"], reports, strict=True):
        assert row["size"] == report["size"]["after"]
        assert row["metric"] == (report["metric"] or {}).get("final")
        assert row["latency"] == report["latency"]["final"]["median"]
    text = compress_run("compare", *runs)
    assert text.code == 0 and "peak memory" in text.out


def test_what_is_no_run(compress_run, two_runs, tmp_path):
    assert compress_run("compare", two_runs / "eight").code == 2
    done = compress_run("compare", two_runs / "eight", tmp_path / "absent")
    assert done.code == 3
    (tmp_path / "report.json").write_text("{")
    assert compress_run("compare", two_runs / "eight", tmp_path).code == 3
