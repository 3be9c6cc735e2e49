"""The main job as a newcomer meets it: results, caching, resuming, determinism, exit codes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import ROOT, run_measured, small_cnn

QUICKSTART = ROOT / "configs/pipelines/quickstart.yaml"
# Times steer bits under a latency budget, so runs that must agree to the byte are held to size alone.
SIZE_ONLY = ["--set", "budget.latency=100 ms"]
REPORT_KEYS = ["version", "command", "config", "seed", "threads", "machine", "model", "splits", "metric", "size", "latency",
               "memory", "budget", "layers", "skipped", "stages", "files", "warnings"]


def model_bytes(folder):
    return {name: (folder / name).read_bytes() for name in ("model_qdq.onnx", "model.ctkb")}


@pytest.fixture(scope="module")
def quick(tmp_path_factory, compress_run):
    folder = tmp_path_factory.mktemp("quick") / "out"
    outcome = compress_run("run", QUICKSTART, "--output", folder, *SIZE_ONLY)
    assert outcome.code == 0, outcome.err
    return folder, outcome


def test_report_has_every_key_the_outside_relies_on(quick):
    report = json.loads((quick[0] / "report.json").read_text())
    assert [k for k in REPORT_KEYS if k not in report] == []
    assert report["metric"]["baseline"] == pytest.approx(0.998)
    assert report["metric"]["final"] >= 0.988
    assert {s["name"] if "name" in s else s for s in report["splits"]} >= {"calibrate", "score", "test"}


def test_the_whole_run_takes_less_than_30_seconds(tmp_path):
    """Of processor time over all threads, ONNX Runtime's included: on idle cores the run is over sooner (4 s of two cores).
    Seconds on the wall are those of whatever else the machine does."""
    outcome, usage = run_measured(["run", QUICKSTART, "--output", tmp_path / "out", *SIZE_ONLY], tmp_path / "log")
    assert outcome.code == 0, outcome.err
    assert usage.ru_utime + usage.ru_stime < 30


def test_manifest_matches_the_files(quick):
    files = json.loads((quick[0] / "manifest.json").read_text())["files"]
    assert {f["path"] for f in files} >= {"model_qdq.onnx", "model.ctkb", "report.json", "report.md", "report.html"}
    for file in files:
        raw = (quick[0] / file["path"]).read_bytes()
        assert (len(raw), hashlib.sha256(raw).hexdigest()) == (file["bytes"], file["sha256"])


def test_size_is_predicted_to_the_byte_and_within_the_budget(quick):
    report = json.loads((quick[0] / "report.json").read_text())
    size = next(b for b in report["budget"] if b["name"] == "size")
    assert size["predicted"] == size["measured"] == (quick[0] / "model.ctkb").stat().st_size <= size["limit"]


def test_every_layer_has_a_scheme_and_a_reason(quick):
    layers = json.loads((quick[0] / "report.json").read_text())["layers"]
    assert len(layers) == 11
    assert all(l["scheme"] and l["reason"] and l["bytes"] > 0 for l in layers)


def test_screen_ends_with_a_table_for_newcomers(quick):
    text = quick[1].out + quick[1].err
    for word in ("before", "after", "accuracy", "file size", "latency", "peak memory", "model.ctkb"):
        assert word in text


def test_second_run_uses_the_cache_and_changes_nothing(quick, compress_run):
    before = model_bytes(quick[0])
    assert compress_run("run", QUICKSTART, "--output", quick[0], *SIZE_ONLY).code == 0
    stages = {s["name"]: s["cached"] for s in json.loads((quick[0] / "report.json").read_text())["stages"]}
    assert all(stages[s] for s in ("calibrate", "sensitivity", "search", "quantize"))
    assert model_bytes(quick[0]) == before


def test_changed_key_runs_again_from_the_first_stage_that_sees_it(quick, compress_run, tmp_path):
    import shutil

    shutil.copytree(quick[0], tmp_path / "out")
    assert compress_run("run", QUICKSTART, "--output", tmp_path / "out", "--set", "budget.latency=100 ms", "--set", "budget.size=40 kB").code == 0
    stages = {s["name"]: s["cached"] for s in json.loads((tmp_path / "out/report.json").read_text())["stages"]}
    assert stages["calibrate"] and stages["sensitivity"] and not stages["search"] and not stages["quantize"]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_same_bytes_at_any_thread_count(quick, compress_run, tmp_path, threads):
    assert compress_run("run", QUICKSTART, "--output", tmp_path / "out", "--threads", threads, *SIZE_ONLY).code == 0
    assert model_bytes(tmp_path / "out") == model_bytes(quick[0])


# The line that the run has written when it is killed, and a wait from there.
MOMENTS = [("calibrate ...", 0), ("sensitivity ...", 0.2), ("search ...", 0), ("quantize ...", 0), ("export ...", 0), ("validate ...", 0.05)]


@pytest.mark.parametrize("line, wait", MOMENTS)
def test_killed_run_resumes_to_the_same_bytes(quick, compress_run, program, tmp_path, line, wait):
    words = ["run", str(QUICKSTART), "--output", str(tmp_path / "out"), *SIZE_ONLY]
    child = subprocess.Popen([str(program), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, CTK_PYTHON=sys.executable))
    told = [child.stderr.readline()]
    while told[-1] and told[-1].strip() != line:
        told.append(child.stderr.readline())
    time.sleep(wait)
    child.kill()
    child.communicate()
    assert told[-1].strip() == line and child.returncode == -signal.SIGKILL, (child.returncode, told)
    assert compress_run(*words).code == 0
    assert model_bytes(tmp_path / "out") == model_bytes(quick[0])


def test_interrupt_ends_with_130_and_a_word_on_resuming(program, tmp_path):
    words = [str(program), "run", str(QUICKSTART), "--output", str(tmp_path / "out"), "--set", "data.score.path=" + str(ROOT / "configs/quickstart/digits.npz"),
             "--set", "data.score.samples=900", "--set", "data.score.skip=300", "--set", "data.score.inputs={image: x}", "--set", "data.score.scale=16"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.6)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    if child.returncode == 0:
        pytest.skip("the run ended before the signal came")
    assert child.returncode == 130
    assert "resum" in err or "goes on" in err


@pytest.mark.usefixtures("product_build")
def test_help_is_instant(program):
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        subprocess.run([str(program), "--help"], stdout=subprocess.DEVNULL, check=True)
        best = min(best, time.perf_counter() - start)
    assert best < 0.05


def test_infeasible_budget_exits_4_before_quantization(compress_run, tmp_path):
    outcome = compress_run("run", QUICKSTART, "--output", tmp_path / "out", "--set", "budget.size=1 kB")
    assert outcome.code == 4
    for word in ("budget.size", "smallest reachable", "held by", "1 kB"):
        assert word in outcome.error
    assert not (tmp_path / "out/model.ctkb").exists()


def test_refused_gate_exits_5_and_leaves_the_report(job):
    x = np.random.default_rng(1).normal(size=(64, 3, 8, 8)).astype(np.float32)
    job.write(small_cnn(), {"x": x})
    # KL to the float network is 0 for the float network itself and above 0 for any rounding of it.
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "kl"},
                 stages=[{"calibrate": {"method": "minmax"}}, {"quantize": {"method": "rtn", "scheme": "w4a8_c"}},
                         {"export": {"formats": ["bundle"]}}, {"validate": {"against": ["float"], "gate": {"metric_drop": "0 pt"}}}])
    outcome = job.run()
    assert outcome.code == 5, outcome.err
    assert "metric_drop" in outcome.error and "kl" in outcome.error
    assert job.report()["metric"]["final"] > 0


def test_json_goes_to_standard_output_alone(compress_run):
    for words in (["check", QUICKSTART], ["list", "ops"], ["kernels"]):
        outcome = compress_run(*words, "--json")
        assert outcome.code == 0
        json.loads(outcome.out)


def test_bundle_and_model_evaluate_alike(quick, compress_run):
    outcome = compress_run("eval", QUICKSTART, "--model", quick[0] / "model.ctkb", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads((quick[0] / "report.json").read_text())
    assert json.loads(outcome.out)["value"] == pytest.approx(report["metric"]["final"])


def test_peak_memory_is_predicted_to_the_byte_and_kept(compress_run, tmp_path):
    words = ["run", QUICKSTART, "--output", tmp_path / "out", *SIZE_ONLY, "--set"]
    assert compress_run(*words, "budget.peak_memory=150 kB").code == 0
    report = json.loads((tmp_path / "out/report.json").read_text())
    row = next(b for b in report["budget"] if b["name"] == "peak_memory")
    assert row["met"] and row["predicted"] == row["measured"] == report["memory"]["final_peak"] <= 150_000
    outcome = compress_run(*words, f"budget.peak_memory={report['memory']['final_peak'] // 2} B")
    assert outcome.code == 4
    assert "budget.peak_memory" in outcome.error and "kB" in outcome.error


@pytest.mark.parametrize("stages", ["search", "quantize"])
def test_a_peak_memory_out_of_reach_ends_before_work(stages, compress_run, tmp_path):
    pipeline = QUICKSTART
    if stages == "quantize":
        pipeline = tmp_path / "plain.yaml"
        lines = QUICKSTART.read_text().replace("../quickstart/", f"{ROOT}/configs/quickstart/").splitlines()
        left_out = ("  - sensitivity:", "  - search:", "budget:")
        text = "\n".join(line for line in lines if not line.startswith(left_out))
        pipeline.write_text(text.replace("{method: rtn}", "{method: rtn, scheme: w8a8_c}") + "\n")
    outcome = compress_run("run", pipeline, "--output", tmp_path / "out", "--set", "budget.peak_memory=40 kB")
    assert outcome.code == 4, outcome.err
    assert "budget.peak_memory: expected at most 40 kB" in outcome.error
    assert "calibrate ..." not in outcome.out + outcome.err
    written = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert written <= {"infeasible.json", "owner"}   # why it cannot be, and whose folder it is


def test_a_price_is_what_a_hundredth_more_of_the_limit_saves(compress_run, tmp_path):
    def solved(limit):
        output = tmp_path / str(limit)
        done = compress_run("run", QUICKSTART, "--output", output, "--set", f"budget={{size: {limit} B}}", "--set", "stages=[calibrate: {method: mse}, "
                            "sensitivity: {metric: kl}, search: {schemes: [w8a8_c, w4a8_c, fp16], solver: ilp}, quantize: {method: rtn}, "
                            "export: {formats: [bundle]}]")
        assert done.code == 0, done.err
        rows = {row["name"]: row for row in json.loads((output / "report.json").read_text())["budget"]}
        return rows["size"]["price"], rows["loss"]["predicted"]

    price, loss = solved(36000)
    _, looser = solved(36360)
    assert price > 0 and price == pytest.approx((loss - looser) / 360, rel=1e-6)
