"""torchrun -m compress: several processes run one pipeline, and what they write is what one process writes."""

import json
import signal

import numpy as np
import pytest
from conftest import onnxruntime_outputs, small_cnn
from ranks import alone, by_hand, package, start_by_hand, torchrun, wait_for

# Files whose bytes tell of no time and no place.
SAME = ("scores.json", "search/costs.json", "search/assignment.json")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return package(tmp_path_factory.mktemp("ranks"))


def pictures(count, seed=0):
    random = np.random.default_rng(seed)
    return {"x": random.normal(size=(count, 3, 8, 8)).astype(np.float32), "y": random.integers(0, 4, count)}


def written(folder):
    """Bytes of what a run wrote, by name: exported files, scores, the search, and the artifact of calibrate."""
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    kept = {name for name in files if name.endswith((".ctkb", ".onnx")) or name in SAME}
    calibrate = [name for name in files if name.startswith(".cache/calibrate-")]
    assert len(calibrate) == 1 and "scores.json" in kept
    return {name: files[name].read_bytes() for name in sorted(kept | set(calibrate))}


def write_search(job, count=90):
    """calibrate, kl sensitivity, search under a size, rounding, export; 41 samples are no multiple of anything."""
    job.write(small_cnn(), pictures(count))
    job.pipeline(threads=1, calibrate={"samples": count // 2 - 4}, evaluate={"skip": count - 20}, budget={"size": "60 %"},
                 stages=[{"calibrate": {"method": "entropy"}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w8a8_c", "w4a8_c"]}},
                         {"quantize": {"method": "rtn"}}, {"export": {"formats": ["onnx_qdq", "bundle"]}}])


@pytest.fixture
def searched(job):
    write_search(job)
    return job


def test_two_processes_write_the_bytes_of_one(searched, site):
    one = alone(site, "run", searched.folder / "pipeline.yaml", "--output", searched.folder / "one")
    assert one.returncode == 0, one.stderr
    two = torchrun(site, 2, "run", searched.folder / "pipeline.yaml", "--output", searched.folder / "two")
    assert two.returncode == 0, two.stderr
    expected = written(searched.folder / "one")
    assert any(name.endswith(".onnx") for name in expected)
    assert written(searched.folder / "two") == expected
    assert two.stdout.count("file size") == 1  # rank 0 alone reports
    report = json.loads((searched.folder / "two/report.json").read_text())
    assert [row["cached"] for row in report["stages"]] == [False] * 5


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 4])
def test_the_number_of_processes_does_not_change_the_bytes(searched, site, size):
    one = alone(site, "run", searched.folder / "pipeline.yaml", "--output", searched.folder / "one")
    many = torchrun(site, size, "run", searched.folder / "pipeline.yaml", "--output", searched.folder / "many")
    assert one.returncode == 0 and many.returncode == 0, many.stderr
    assert written(searched.folder / "many") == written(searched.folder / "one")


def test_gptq_gives_the_codes_of_one_process(job, site):
    """Layers that read one value are fitted on different processes: two heads of the same features, and two schemes."""
    job.write(small_cnn(), pictures(90))
    job.pipeline(threads=1, calibrate={"samples": 41}, evaluate={"skip": 70}, budget={"size": "60 %"},
                 stages=[{"calibrate": {}}, {"sensitivity": {"metric": "fisher"}}, {"search": {"schemes": ["w8a8_c", "w4a8_c"]}},
                         {"quantize": {"method": "gptq"}}, {"export": {"formats": ["bundle"]}}])
    one = alone(site, "run", job.folder / "pipeline.yaml", "--output", job.folder / "one")
    two = torchrun(site, 2, "run", job.folder / "pipeline.yaml", "--output", job.folder / "two")
    assert one.returncode == 0 and two.returncode == 0, one.stderr + two.stderr
    assert written(job.folder / "two") == written(job.folder / "one")
    methods = {row["method"] for row in json.loads((job.folder / "two/report.json").read_text())["layers"]}
    assert "gptq" in methods


def finetuned(job, site, size, mixup=0, **keys):
    """Outputs of the network after two epochs on 96 labelled pictures, and the loss of each epoch."""
    output = job.folder / f"of{size}"
    stages = [{"finetune": {"epochs": 2, "batch_size": 24, "learning_rate": 0.02, **keys}}, {"export": {"formats": ["onnx"]}}]
    data = pictures(160)
    data["x"] += data["y"][:, None, None, None]  # brightness tells the class
    job.write(small_cnn(), data)
    path = job.pipeline(threads=1, evaluate={"skip": 130, "labels": "y", "metric": "top1"}, stages=stages)
    config = json.loads(path.read_text())
    config["data"]["train"] = {"path": "data.npz", "samples": 96, "labels": "y", "augment": {"flip": True, "mixup": mixup}}
    path.write_text(json.dumps(config))
    run = torchrun(site, size, "run", path, "--output", output) if size > 1 else alone(site, "run", path, "--output", output)
    assert run.returncode == 0, run.stderr
    notes = [json.loads(p.read_text()[:-32])["notes"] for p in (output / ".cache").glob("finetune-*") if "network" not in p.name and "training" not in p.name]
    return onnxruntime_outputs(output / "model.onnx", {"x": data["x"][:32]})[0], [row["loss"] for row in notes[0]["epochs"]]


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_training_on_several_processes_is_that_of_one_but_for_rounding(job, site, size):
    """Batch normalization, loss and gradients are of whole batches: 8 steps apart by the order of float sums alone."""
    one, losses = finetuned(job, site, 1)
    many, their_losses = finetuned(job, site, size)
    start = onnxruntime_outputs(small_cnn(), {"x": pictures(160)["x"][:32]})[0]
    assert np.abs(one - start).max() > 0.1  # it was trained at all
    np.testing.assert_allclose(many, one, rtol=0, atol=2e-3 * np.abs(one).max())
    np.testing.assert_allclose(their_losses, losses, rtol=1e-3)


@pytest.mark.slow
def test_plain_gradients_and_mixed_pictures_are_those_of_one_process(job, site):
    one, losses = finetuned(job, site, 1, mixup=0.5, batch_norm=False, optimizer="adamw", learning_rate=1e-3)
    two, their_losses = finetuned(job, site, 2, mixup=0.5, batch_norm=False, optimizer="adamw", learning_rate=1e-3)
    np.testing.assert_allclose(two, one, rtol=0, atol=2e-3 * np.abs(one).max())
    np.testing.assert_allclose(their_losses, losses, rtol=1e-3)


def test_processes_of_other_configurations_are_refused(searched, site):
    words = [["run", searched.folder / "pipeline.yaml", "--set", f"seed={rank}"] for rank in range(2)]
    ended = by_hand(site, words)
    assert [code for code, _, _ in ended] == [2, 2]
    assert "rank 1 of 2: expected the configuration of rank 0" in ended[0][2] and ended[1][2] == ""
    assert not (searched.folder / "out/report.json").exists()


def test_a_process_without_the_data_ends_all(searched, site):
    other = searched.folder / "elsewhere"
    other.mkdir()
    for name in ("pipeline.yaml", "net.onnx"):
        (other / name).write_bytes((searched.folder / name).read_bytes())
    ended = by_hand(site, [["run", searched.folder / "pipeline.yaml"], ["run", other / "pipeline.yaml"]])
    assert [code for code, _, _ in ended] == [3, 3]
    assert "rank 1 of 2: " in ended[0][2] and "data.npz" in ended[0][2] and ended[1][2] == ""
    other.joinpath("data.npz").write_bytes(b"")
    np.savez(other / "data.npz", **pictures(90, seed=5))
    ended = by_hand(site, [["run", searched.folder / "pipeline.yaml"], ["run", other / "pipeline.yaml"]])
    assert [code for code, _, _ in ended] == [3, 3]
    assert "expected the model and the data of rank 0" in ended[0][2]


def test_a_process_that_dies_ends_the_job_which_then_goes_on(job, site):
    write_search(job, count=20000)  # enough for sensitivity to take a while
    path = job.folder / "pipeline.yaml"
    one = alone(site, "run", path, "--output", job.folder / "one")
    assert one.returncode == 0
    children = start_by_hand(site, [["run", path]] * 2)
    wait_for(lambda: list(job.output.glob(".cache/calibrate-*")))
    children[1].send_signal(signal.SIGKILL)
    told = children[0].communicate(timeout=60)[1]
    assert children[0].returncode == 130, told
    assert "rank 0 of 2, " in told and "another rank ended" in told and "goes on where this run stopped" in told
    again = torchrun(site, 2, "run", path)
    assert again.returncode == 0, again.stderr
    assert json.loads((job.output / "report.json").read_text())["stages"][0]["cached"]
    assert written(job.output) == written(job.folder / "one")


def test_other_verbs_are_of_one_process(searched, site):
    told = torchrun(site, 2, "check", searched.folder / "pipeline.yaml")
    once = alone(site, "check", searched.folder / "pipeline.yaml")
    assert told.returncode == 0 and told.stdout == once.stdout


def test_wrong_words_end_as_on_the_command_line(site):
    ended = alone(site, "run")
    assert ended.returncode == 2 and "pipeline is required" in ended.stderr
