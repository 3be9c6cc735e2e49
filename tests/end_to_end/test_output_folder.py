"""Where a run may write: found before any work, by `run` and `check` alike."""

import ctypes
import os
import subprocess

import numpy as np
import onnx
import pytest
from conftest import small_cnn
from quantized import gaussian, one_layer

CONFIG, INPUT = 2, 3


@pytest.fixture
def ready(job):
    job.write(small_cnn(), {"x": gaussian(32, 3, 8, 8)})
    job.pipeline(calibrate={}, threads=1)
    return job


def refused_by_both(job, compress_run, *words, code=CONFIG, **kwargs):
    """The message, the same from run and check; no stage has begun."""
    messages = []
    for verb in ("run", "check"):
        outcome = compress_run(verb, job.folder / "pipeline.yaml", *words, **kwargs)
        assert outcome.code == code, (verb, outcome.code, outcome.out, outcome.err)
        assert "calibrate ..." not in outcome.err
        messages.append(outcome.error)
    assert messages[0] == messages[1]
    return messages[0]


def test_check_agrees_with_run_on_a_good_folder(ready, compress_run):
    assert compress_run("check", ready.folder / "pipeline.yaml").code == 0
    assert not ready.output.exists()   # check only looks
    assert ready.run().code == 0
    assert compress_run("check", ready.folder / "pipeline.yaml").code == 0


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_output_that_is_the_model_is_refused_before_any_work(ready, compress_run, link):
    name = "net.onnx"
    if link:
        name = "other"
        link(ready.folder / "net.onnx", ready.folder / name)
    message = refused_by_both(ready, compress_run, "--output", ready.folder / name)
    assert name in message and "file" in message


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_export_over_the_model_is_refused_before_any_work(job, compress_run, link):
    job.output.mkdir()
    job.write(small_cnn(), {"x": gaussian(32, 3, 8, 8)})
    (job.folder / "net.onnx").rename(job.output / "model_qdq.onnx")
    if link:
        link(job.output / "model_qdq.onnx", job.folder / "net.onnx")
    job.pipeline(calibrate={}, threads=1, model="net.onnx" if link else "out/model_qdq.onnx")
    before = (job.output / "model_qdq.onnx").read_bytes()
    message = refused_by_both(job, compress_run, "--force")
    assert "model_qdq.onnx" in message and "the model" in message
    assert (job.output / "model_qdq.onnx").read_bytes() == before


@pytest.mark.parametrize("name", ["model_qdq.onnx", "model.ctkb", "report.json", "manifest.json"])
def test_a_data_file_of_the_model_is_never_written_over(job, compress_run, name):
    model = one_layer("Gemm", {"W": gaussian(64, 64)}, ["N", 64], ["N", 64])
    job.write(model, {"x": gaussian(8, 64)})
    job.output.mkdir()
    onnx.save(model, job.output / "net.onnx", save_as_external_data=True, location=name, size_threshold=0)
    job.pipeline(calibrate={}, model="out/net.onnx", threads=1)
    before = (job.output / name).read_bytes()
    message = refused_by_both(job, compress_run, "--force")
    assert name in message and "data file of the model" in message
    assert (job.output / name).read_bytes() == before


def test_a_data_file_reached_through_a_link_in_the_output_is_never_written_over(job, compress_run):
    model = one_layer("Gemm", {"W": gaussian(64, 64)}, ["N", 64], ["N", 64])
    job.write(model, {"x": gaussian(8, 64)})
    onnx.save(model, job.folder / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    job.output.mkdir()
    os.symlink(job.folder / "net.data", job.output / "model_qdq.onnx")
    job.pipeline(calibrate={}, threads=1)
    before = (job.folder / "net.data").read_bytes()
    assert "net.data" in refused_by_both(job, compress_run, "--force")
    assert (job.folder / "net.data").read_bytes() == before and (job.output / "model_qdq.onnx").is_symlink()


@pytest.mark.parametrize("what", ["data", "pipeline"])
def test_other_inputs_are_never_written_over(ready, compress_run, what):
    ready.output.mkdir()
    if what == "data":
        (ready.folder / "data.npz").rename(ready.output / "report.json.npz")
        os.symlink(ready.output / "report.json.npz", ready.output / "report.json")
        ready.pipeline(calibrate={"path": "out/report.json.npz"}, threads=1)
        assert "data.calibrate" in refused_by_both(ready, compress_run, "--force")
    else:
        os.link(ready.folder / "pipeline.yaml", ready.output / "manifest.json")
        assert "the pipeline file" in refused_by_both(ready, compress_run, "--force")


def test_the_root_folder_is_refused_even_with_force(ready, compress_run):
    assert "root folder" in refused_by_both(ready, compress_run, "--output", "/", "--force")
    assert not os.path.exists("/report.json") and not os.path.exists("/.cache/owner")


@pytest.mark.parametrize("words", [["--output", ""], ["--output="]])
def test_an_empty_output_is_refused(ready, compress_run, words):
    message = refused_by_both(ready, compress_run, *words)
    assert "--output" in message
    assert not ready.output.exists()


def test_an_empty_output_in_the_file_is_refused(ready, compress_run):
    ready.pipeline(calibrate={}, threads=1, output="")
    assert "output" in refused_by_both(ready, compress_run)


def test_a_file_on_the_way_is_refused(ready, compress_run):
    assert "data.npz" in refused_by_both(ready, compress_run, "--output", ready.folder / "data.npz" / "a" / "b")


def test_a_link_to_nowhere_is_refused(ready, compress_run):
    os.symlink(ready.folder / "gone", ready.folder / "link")
    assert "link" in refused_by_both(ready, compress_run, "--output", ready.folder / "link")


def give_up_rights_of_root():
    """Root of the child keeps its name but no longer writes where the mode forbids it."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
    for right in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, right, 0, 0, 0)


def test_a_folder_without_the_right_to_write_is_refused(ready, compress_run):
    closed = ready.folder / "closed"
    closed.mkdir(mode=0o555)
    if subprocess.run(["touch", closed / "probe"], preexec_fn=give_up_rights_of_root, stderr=subprocess.DEVNULL).returncode == 0:
        pytest.skip("this user writes into folders of mode 555 whatever rights it gives up")
    message = refused_by_both(ready, compress_run, "--output", closed / "out", preexec_fn=give_up_rights_of_root)
    assert str(closed) in message and "Permission denied" in message
    assert os.listdir(closed) == []


def test_a_folder_that_cannot_be_made_is_refused_before_the_first_stage(ready):
    outcome = ready.run("--output", "/proc/none/out")
    assert outcome.code == CONFIG and "/proc/none/out" in outcome.error and "calibrate ..." not in outcome.err


def test_check_refuses_a_folder_of_somebody_else_unless_forced(ready, compress_run):
    ready.output.mkdir()
    (ready.output / "thesis.txt").write_text("mine")
    assert "--force" in refused_by_both(ready, compress_run)
    assert compress_run("check", ready.folder / "pipeline.yaml", "--force").code == 0
    assert os.listdir(ready.output) == ["thesis.txt"]


def test_a_share_of_the_float_model_counts_its_data_files(job, compress_run):
    """64 x 64 floats lie beside a small file: 50 % of both is plenty, 50 % of the small one alone could not be met."""
    model = one_layer("Gemm", {"W": gaussian(64, 64)}, ["N", 64], ["N", 64])
    job.write(model, {"x": gaussian(8, 64)})
    onnx.save(model, job.folder / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    job.pipeline(calibrate={}, threads=1, budget={"size": "50 %"})
    assert job.run().code == 0
    report = job.report()
    size = (job.folder / "net.onnx").stat().st_size + (job.folder / "net.data").stat().st_size
    assert report["size"]["before"] == size and size > 64 * 64 * 4
    assert report["budget"][0]["limit"] == size / 2 and report["budget"][0]["met"] is True


def test_a_run_killed_while_it_claimed_its_folder_does_not_bar_the_next(ready):
    (ready.output / ".cache").mkdir(parents=True)
    (ready.output / ".cache/owner.tmp").write_text("made by com")
    assert ready.run().code == 0
