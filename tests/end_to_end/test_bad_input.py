"""Bad input: one message, the right exit code, nothing half-written."""

import json
import os
import resource
import signal

import numpy as np
import onnx
import pytest
from conftest import F32, ROOT, model_of, small_cnn
from onnx import helper

CONFIG, INPUT = 2, 3


def pictures(count=48, seed=0):
    r = np.random.default_rng(seed)
    return {"x": r.normal(size=(count, 3, 8, 8)).astype(np.float32), "y": (np.arange(count) % 4).astype(np.int64)}


@pytest.fixture
def ready(job):
    job.write(small_cnn(), pictures())
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    return job


def refused(job, code, *words, **kwargs):
    outcome = job.run(**kwargs)
    assert outcome.code == code, (outcome.code, outcome.err)
    message = outcome.error
    assert message, outcome.err
    for word in words:
        assert word in message, (word, message)
    leftovers = [p.name for p in job.output.rglob("*") if p.is_file() and p.suffix in (".onnx", ".ctkb", ".json")] if job.output.exists() else []
    assert leftovers == []
    assert not list(job.folder.rglob("*.part.*"))
    return message


def test_the_ready_job_is_good(ready):
    assert ready.run().code == 0


def test_missing_model(ready):
    (ready.folder / "net.onnx").unlink()
    refused(ready, INPUT, "net.onnx", "No such file")


def test_empty_model(ready):
    (ready.folder / "net.onnx").write_bytes(b"")
    refused(ready, INPUT, "net.onnx", "empty")


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_as_model(ready, seed):
    (ready.folder / "net.onnx").write_bytes(np.random.default_rng(seed).bytes(5000))
    refused(ready, INPUT, "net.onnx")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_truncated_model(ready, share):
    whole = (ready.folder / "net.onnx").read_bytes()
    (ready.folder / "net.onnx").write_bytes(whole[: int(len(whole) * share)])
    refused(ready, INPUT, "net.onnx")


def test_missing_data(ready):
    (ready.folder / "data.npz").unlink()
    refused(ready, INPUT, "data.npz")


def test_wrong_input_name(ready):
    ready.pipeline(calibrate={"samples": 16, "inputs": {"picture": "x"}}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    refused(ready, INPUT, "picture", "x")


def test_wrong_array_name(ready):
    ready.pipeline(calibrate={"samples": 16, "inputs": {"x": "pixels"}}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    refused(ready, INPUT, "pixels", "x f32", "y i64")


def test_wrong_shape(ready):
    np.savez(ready.folder / "data.npz", x=np.zeros((48, 8, 8, 3), np.float32), y=np.zeros(48, np.int64))
    refused(ready, INPUT, "[3,8,8]", "[8,8,3]", "x")


def test_wrong_dtype(ready):
    np.savez(ready.folder / "data.npz", x=np.zeros((48, 3, 8, 8), np.float64), y=np.zeros(48, np.int64))
    refused(ready, INPUT, "f32", "f64", "x")


def test_integers_need_an_explicit_conversion(ready):
    np.savez(ready.folder / "data.npz", x=np.zeros((48, 3, 8, 8), np.uint8), y=np.zeros(48, np.int64))
    refused(ready, INPUT, "u8", "scale")


def test_nan_in_a_sample(ready):
    arrays = pictures()
    arrays["x"][5, 1, 2, 3] = np.nan
    np.savez(ready.folder / "data.npz", **arrays)
    refused(ready, INPUT, "5", "x", "NaN")


def test_nan_in_a_weight(ready):
    model = small_cnn()
    weight = next(i for i in model.graph.initializer if i.name == "w2")
    array = onnx.numpy_helper.to_array(weight).copy()
    array[3, 5, 1, 2] = np.nan
    weight.CopyFrom(onnx.numpy_helper.from_array(array, "w2"))
    onnx.save(model, ready.folder / "net.onnx")
    refused(ready, INPUT, "w2", "1 NaN", "[3,5,1,2]")


def test_label_outside_the_classes(ready):
    arrays = pictures()
    arrays["y"][20] = 7
    np.savez(ready.folder / "data.npz", **arrays)
    refused(ready, INPUT, "7", "4")


def test_zero_samples(ready):
    ready.pipeline(calibrate={"samples": 0}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    refused(ready, CONFIG, "pipeline.yaml", "data.calibrate.samples", '"0"', "1")


def test_skip_past_the_end(ready):
    ready.pipeline(calibrate={"skip": 48}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    refused(ready, INPUT, "data.npz", "48")


def test_evaluate_sample_in_another_split(ready):
    ready.pipeline(calibrate={"samples": 17}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    refused(ready, INPUT, "calibrate", "test")


def unknown_op_model():
    model = small_cnn()
    node = next(n for n in model.graph.node if n.name == "relu1")
    node.op_type, node.domain = "Foo", "my.ops"
    model.opset_import.append(helper.make_opsetid("my.ops", 1))
    return model


def test_unknown_op_in_the_middle_is_refused_before_work(ready):
    onnx.save(unknown_op_model(), ready.folder / "net.onnx")
    refused(ready, INPUT, "relu1", "my.ops", "Foo", "1")


def test_unknown_op_is_listed_by_check(ready, compress_run):
    onnx.save(unknown_op_model(), ready.folder / "net.onnx")
    outcome = compress_run("check", ready.folder / "pipeline.yaml")
    assert outcome.code == INPUT and "relu1" in outcome.err and "Foo" in outcome.err


def test_every_unknown_op_is_listed_at_once(ready, compress_run):
    model = unknown_op_model()
    other = next(n for n in model.graph.node if n.op_type == "Relu")
    other.op_type, other.domain = "Bar", "my.ops"
    onnx.save(model, ready.folder / "net.onnx")
    outcome = compress_run("check", ready.folder / "pipeline.yaml")
    assert outcome.code == INPUT
    assert outcome.err.count("compress: error: ") == 2 and "Foo" in outcome.err and "Bar" in outcome.err


def test_output_is_the_input(ready):
    ready.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"}, output="net.onnx")
    before = (ready.folder / "net.onnx").read_bytes()
    outcome = ready.run()
    assert outcome.code == CONFIG and "net.onnx" in outcome.error
    assert (ready.folder / "net.onnx").read_bytes() == before


def test_export_would_replace_the_input(job):
    """The model lies in the output folder under the exported name, reached through a link."""
    job.output.mkdir()
    job.write(small_cnn(), pictures())
    (job.folder / "net.onnx").rename(job.output / "model_qdq.onnx")
    os.symlink(job.output / "model_qdq.onnx", job.folder / "net.onnx")
    before = (job.output / "model_qdq.onnx").read_bytes()
    job.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    for words in ([], ["--force"]):
        outcome = job.run(*words)
        assert outcome.code == CONFIG, outcome.err
        assert (job.output / "model_qdq.onnx").read_bytes() == before


def test_output_folder_of_somebody_else(ready):
    ready.output.mkdir()
    (ready.output / "thesis.txt").write_text("mine")
    outcome = ready.run()
    assert outcome.code == CONFIG and "--force" in outcome.error
    assert os.listdir(ready.output) == ["thesis.txt"]
    assert ready.run("--force").code == 0
    assert (ready.output / "thesis.txt").read_text() == "mine"


def limit_file_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))


def test_full_disk(ready):
    outcome = ready.run(preexec_fn=limit_file_size)
    assert outcome.code == INPUT, outcome.err
    assert "File too large" in outcome.error or "No space" in outcome.error
    assert not (ready.output / "model.ctkb").exists() and not (ready.output / "model_qdq.onnx").exists()
    assert not list(ready.folder.rglob("*.part.*"))
    assert ready.run().code == 0   # leftovers are not taken for results


def test_folder_that_cannot_be_written(ready):
    (ready.folder / "file").write_text("")
    outcome = ready.run("--output", ready.folder / "file" / "out")
    assert outcome.code == CONFIG and "file/out" in outcome.error


def test_budget_without_unit(ready):
    ready.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"}, budget={"size": 60})
    refused(ready, CONFIG, "budget.size", "60", "kB")


def test_all_problems_at_once(ready):
    path = ready.folder / "pipeline.yaml"
    path.write_text("model: net.onnx\noutput: out\ndatta: {}\nstages:\n  - calibrate: {method: minmx}\n  - quantize: {bitz: 4}\n  - exprt: {}\n")
    message = refused(ready, CONFIG, "pipeline.yaml:3", "data", "pipeline.yaml:5", "minmax", "pipeline.yaml:6", "bits", "pipeline.yaml:7", "export")
    assert len(message.splitlines()) >= 4 or message.count("pipeline.yaml:") >= 4


def test_pattern_that_matches_nothing(ready):
    ready.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"},
                   stages=[{"calibrate": {"method": "minmax"}}, {"quantize": {"method": "rtn", "scheme": "w8a8_c", "ignore": ["haed"]}},
                           {"export": {"formats": ["bundle"]}}])
    refused(ready, CONFIG, "haed", "head")


def test_prune_without_an_aim(ready):
    ready.pipeline(calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"},
                   stages=[{"prune": {"method": "l1"}}, {"export": {"formats": ["onnx"]}}])
    refused(ready, CONFIG, "prune", "macs", "pruning_ratio")


def test_names_beyond_ascii_and_another_working_directory(tmp_path, compress_run):
    from conftest import Job

    folder = tmp_path / "модель 重み"
    folder.mkdir()
    job = Job(folder, compress_run)
    job.write(small_cnn(), pictures(), name="a b.onnx")
    model = onnx.load(folder / "a b.onnx")
    onnx.save(model, folder / "a b.onnx", save_as_external_data=True, all_tensors_to_one_file=True, location="вес.bin", size_threshold=0)
    job.pipeline(model="a b.onnx", calibrate={"samples": 16}, evaluate={"skip": 16, "metric": "top1", "labels": "y"})
    outcome = job.run(cwd="/")
    assert outcome.code == 0, outcome.err
    assert (folder / "out/model.ctkb").exists()


@pytest.mark.parametrize("cut", [0, 7, 64, 127, 130, 0.5, 0.99])
def test_truncated_bundle(ready, compress_run, cut):
    assert ready.run().code == 0
    whole = (ready.output / "model.ctkb").read_bytes()
    broken = ready.folder / "broken.ctkb"
    broken.write_bytes(whole[: cut if isinstance(cut, int) else int(len(whole) * cut)])
    outcome = compress_run("graph", "show", broken)
    assert outcome.code == INPUT and "broken.ctkb" in outcome.error


@pytest.mark.parametrize("seed", range(20))
def test_bundle_with_a_flipped_byte(ready, compress_run, seed):
    if not hasattr(test_bundle_with_a_flipped_byte, "whole"):
        assert ready.run().code == 0
        test_bundle_with_a_flipped_byte.whole = (ready.output / "model.ctkb").read_bytes()
    raw = bytearray(test_bundle_with_a_flipped_byte.whole)
    place = int(np.random.default_rng(seed).integers(0, len(raw)))
    raw[place] ^= 0x55
    broken = ready.folder / "broken.ctkb"
    broken.write_bytes(raw)
    outcome = compress_run("graph", "show", broken)
    # A flip in the zero padding means nothing; everything else is covered by a hash.
    assert outcome.code in (0, INPUT)
    assert outcome.code == INPUT or 80 <= place < 128 or raw[place] == 0x55


def test_forced_instruction_set_the_host_lacks(ready):
    message = refused(ready, CONFIG, "CTK_ISA", "arm_neondot", "scalar", env={"CTK_ISA": "arm_neondot"})
    assert "scalar" in message
    refused(ready, CONFIG, "CTK_ISA", "sse9", env={"CTK_ISA": "sse9"})


@pytest.mark.parametrize("isa", ["x86_avx512vnni", "x86_avxvnni"])
def test_forcing_a_dot_product_set_leaves_the_other_kinds_on_avx2(compress_run, isa):
    outcome = compress_run("kernels", "--why", "--json", env={"CTK_ISA": isa})
    if outcome.code != 0:
        pytest.skip(f"this processor has no {isa}")
    chosen = {row["kind"]: row["isa"] for row in json.loads(outcome.out)["kernels"] if row["chosen"]}
    assert chosen["gemm_w8a8"] == isa
    assert {chosen[kind] for kind in ("eltwise", "pool", "convert")} == {"x86_avx2"}


def test_rows_of_other_processors_are_named_and_never_taken(compress_run):
    rows = json.loads(compress_run("kernels", "--why", "--json").out)["kernels"]
    foreign = [row for row in rows if row["why"].startswith("for another family of processors: ")]
    family = "arm_" if any(row["chosen"] and row["isa"].startswith("x86_") for row in rows) else "x86_"
    assert {row["kind"] for row in foreign} >= {"gemm_w8a8", "gemm_w4a8", "gemm_wg", "depthwise_w8a8", "pool", "lookup"}
    assert all(row["isa"].startswith(family) and not row["chosen"] for row in foreign)
    listed = json.loads(compress_run("list", "kernels", "--json").out)["kernels"]
    needs = {row["name"]: row["needs"] for row in listed}
    assert all(needs[row["name"]] == f"{row['isa']}, another family of processors" for row in foreign)


def test_the_winograd_row_is_listed(compress_run):
    rows = json.loads(compress_run("kernels", "--why", "--json").out)["kernels"]
    winograd = [row for row in rows if row["kind"] == "winograd_w8a8"]
    if not any(row["isa"].startswith("x86") and "another family" not in row["why"] for row in rows):
        pytest.skip("only the x86 rows have one")
    taken = next(row for row in rows if row["kind"] == "gemm_w8a8" and row["chosen"])
    assert winograd and all(row["why"] for row in winograd)
    assert [row["chosen"] for row in winograd] == [row["isa"] == taken["isa"] for row in winograd]
