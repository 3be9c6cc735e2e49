"""Coding layer by layer: what a kill costs, and weights that came rounded already."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from conftest import DATA, ROOT

STORIES = DATA / "stories260k"
WRITER = ROOT / "tests/bench/write_decoder.py"
needs_stories = pytest.mark.skipif(not STORIES.is_dir(), reason="CTK_DATA has no stories260k")

PIPELINE = """
model: {model}
output: out
data:
  calibrate: {{path: {text}, context: {context}, windows: {windows}}}
stages:
  - quantize: {{method: gptq, scheme: w4a16_g32}}
  - export:   {{formats: [bundle]}}
"""


def decoder(folder, *, tokenizer=STORIES, vocab=512, **sizes):
    """A checkpoint in bfloat16 with random weights."""
    words = [word for name, size in sizes.items() for word in (f"--{name.replace('_', '-')}", str(size))]
    subprocess.run([sys.executable, WRITER, folder, "--vocab", str(vocab), "--tokenizer", tokenizer, *words], check=True)
    return folder


def pipeline(folder, model, text=STORIES / "stories_calib_generated.txt", context=64, windows=16):
    file = folder / "coding.yaml"
    file.write_text(PIPELINE.format(model=model, text=text, context=context, windows=windows))
    return file


def stored(output):
    """Files of codes, also while the run that keeps them takes them away."""
    found = []
    for folder, _, names in os.walk(output / ".cache"):   # passes over folders that are gone by then
        if "/codes-" in folder:
            found += [pathlib.Path(folder, name) for name in names if ".part" not in name]
    return found


@needs_stories
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_among_its_layers_goes_on_to_the_same_bytes(compress_run, program, tmp_path, seed):
    model = decoder(tmp_path / "model", layers=3, hidden=128, intermediate=512, heads=4)
    file = pipeline(tmp_path, model)
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    assert compress_run("run", file, "--output", straight).code == 0
    groups = 3 * 4   # q k v; o; gate up; down
    wanted = random.Random(seed).randrange(1, groups)
    child = subprocess.Popen([str(program), "run", str(file), "--output", str(stopped)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    while len(stored(stopped)) < wanted and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in stored(stopped)}
    assert wanted <= len(kept) <= groups
    seen = {}
    child = subprocess.Popen([str(program), "run", str(file), "--output", str(stopped)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    while child.poll() is None:   # what was kept is not coded again
        for path in stored(stopped):
            try:
                seen[path] = path.stat().st_mtime_ns
            except FileNotFoundError:
                pass
        time.sleep(0.001)
    assert child.returncode == 0
    assert all(seen[path] == kept[path] for path in kept if path in seen)
    assert (stopped / "model.ctkb").read_bytes() == (straight / "model.ctkb").read_bytes()
    assert stored(stopped) == [] == stored(straight)


def predicted_and_measured(compress_run, file, output):
    checked = compress_run("check", file, "--json")
    assert checked.code == 0, checked.err
    [text] = [row["text"] for row in json.loads(checked.out)["warnings"] if row["code"] == "coding_memory"]
    # A program of its own takes the peak from the kernel: that of this process would count what the tests hold.
    done = compress_run("run", file, "--output", output, timeout=7200)
    assert done.code == 0, done.err
    report = json.loads((output / "report.json").read_text())
    return int(re.search(r"\((\d+) bytes\)", text)[1]), report["memory"]["run_peak_rss"], text


@needs_stories
@pytest.mark.slow
def test_check_predicts_the_memory_where_one_layer_decides(compress_run, product_build, tmp_path):
    file = pipeline(tmp_path, decoder(tmp_path / "model", layers=2, hidden=256, intermediate=2816, heads=4))
    predicted, measured, text = predicted_and_measured(compress_run, file, tmp_path / "out")
    assert "down_proj" in text
    assert measured == pytest.approx(predicted, rel=0.15), text


def on_grid(shape, bits, group, symmetric, minimum, rng):
    """float32 weights (code - zero) * step + minimum with fp16 steps, one a group of neighbours."""
    rows, columns = shape
    steps = rng.uniform(0.01, 0.03, (rows, columns // group, 1)).astype(np.float16).astype(np.float32)
    codes = rng.integers(0, 2**bits, (rows, columns // group, group)).astype(np.float32)
    zero = 2 ** (bits - 1) if symmetric else rng.integers(0, 2**bits, (rows, columns // group, 1)).astype(np.float32)
    offset = np.float32(0.3) * steps if minimum else 0
    return ((codes - zero) * steps + offset).astype(np.float32).reshape(shape)


@pytest.mark.parametrize("kind, scheme, kept", [("symmetric", "w4a16_g32", True), ("symmetric", "w3a16_g32", False),
                                                ("affine", "w4a16_g32_affine", True), ("minimum", "w4a16_g32_affine", False),
                                                ("random", "w4a16_g32", None)])
@pytest.mark.parametrize("method", ["rtn", "gptq"])
def test_weights_that_lie_on_a_grid_are_noticed_and_kept_where_the_scheme_holds_it(job, kind, scheme, kept, method):
    import onnx
    from conftest import model_of
    rng = np.random.default_rng(5)
    weight = (rng.normal(0, 0.02, (48, 128)).astype(np.float32) if kind == "random"
              else on_grid((48, 128), 4, 32, kind == "symmetric", kind == "minimum", rng))
    model = model_of([onnx.helper.make_node("Gemm", ["x", "w"], ["y"], name="layer", transB=1)], {"x": (["N", 128], 1)},
                     {"y": (["N", 48], 1)}, {"w": weight})
    job.write(model, {"x": rng.normal(size=(64, 128)).astype(np.float32)})
    file = job.pipeline(calibrate={"samples": 32, "inputs": {"x": "x"}}, validate=False,
                        stages=[{"quantize": {"method": method, "scheme": scheme}}, {"export": {"formats": ["bundle"]}}])
    checked = job._run("check", file, "--json")
    assert checked.code == 0, checked.err
    told = [row["text"] for row in json.loads(checked.out)["warnings"] if row["code"] == "stored_grid"]
    done = job.run()
    assert done.code == 0, done.err
    report = job.report()
    assert [row["text"] for row in report["warnings"] if row["code"] == "stored_grid"] == told
    [layer] = report["layers"]
    if kept is None:
        assert told == [] and layer["method"] in ("rtn", "gptq")
        return
    [text] = told
    assert "1 layer holds weights that were rounded before, to 4 bits in groups of 32" in text and "layer" in text
    assert ("kept without loss" in text) == kept and ("rounds them a second time" in text) == (not kept)
    if kept:
        assert layer["method"] == "kept" and layer["error_method"] == 0
    else:
        assert layer["method"] in ("rtn", "gptq") and layer["error_method"] > 0
    if kind == "minimum":
        assert "zero points here are integers" in text and "ignore" in text
    if (kind, scheme) == ("symmetric", "w3a16_g32"):
        assert "Use w4a16_g32, which holds it" in text
