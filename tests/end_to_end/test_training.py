"""The stages that train: what they gain, what they refuse, how they go on after a stop; and what is said without a trainer."""

import json
import re
import shutil
import signal
import subprocess

import numpy as np
import onnx
import pytest
from conftest import find_program, model_of, small_cnn
from onnx import numpy_helper
from quantized import gaussian

CONFIG, INPUT = 2, 3


@pytest.fixture(scope="session")
def trainer():
    """Beside the program, or in ../lib of it."""
    bin = find_program().resolve().parent
    if not any((folder / "libctk_train.so").exists() for folder in (bin, bin.parent / "lib")):
        pytest.skip("built without the trainer (make trainer)")


def columns(count, seed=3, classes=4):
    """Noise in which class c has a bright column 2 c."""
    x, y = gaussian(count, 3, 8, 8), (np.arange(count) % classes).astype(np.int64)
    for i, label in enumerate(y):
        x[i, :, :, 2 * label] += 1.5
    return {"x": x, "y": y}


def training(job, stages, train=None, evaluate=None, count=640, **extra):
    job.write(small_cnn(), columns(count))
    evaluate = {"skip": count - 128, "labels": "y", "metric": "top1", **(evaluate or {})}
    path = job.pipeline(evaluate=evaluate, threads=1, stages=stages, **extra)
    config = json.loads(path.read_text())
    config["data"]["train"] = {"path": "data.npz", "samples": count - 128, "labels": "y", **(train or {})}
    path.write_text(json.dumps(config, indent=1))


EXPORT, VALIDATE = {"export": {"formats": ["bundle", "onnx"]}}, {"validate": {}}
FINETUNE = {"finetune": {"epochs": 6, "batch_size": 32, "learning_rate": 0.1}}


def test_finetune_gains_and_says_what_it_did(job, trainer):
    training(job, [FINETUNE, EXPORT, VALIDATE], train={"augment": {"shift": 0}})
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert re.search(r"finetune: epoch 6: loss 0\.\d+, top1 0\.\d+", outcome.err), outcome.err
    report = job.report()
    stage = report["stages"][0]
    assert stage["name"] == "finetune" and stage["accepted"] and stage["metric_after"] > stage["metric_before"] + 0.3
    assert report["metric"]["final"] > report["metric"]["baseline"] + 0.3   # on data no stage has seen
    operators = {n.op_type for n in onnx.load(job.output / "model.onnx").graph.node}
    assert "BatchNormalization" not in operators   # folded again


def test_the_same_command_gives_the_same_bytes_and_another_seed_others(job, trainer):
    training(job, [FINETUNE, EXPORT])
    assert job.run().code == 0
    first = (job.output / "model.ctkb").read_bytes()
    shutil.rmtree(job.output)
    assert job.run().code == 0
    assert (job.output / "model.ctkb").read_bytes() == first
    shutil.rmtree(job.output)
    assert job.run("--set", "seed=1").code == 0
    assert (job.output / "model.ctkb").read_bytes() != first


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_training_goes_on_and_ends_in_the_same_bytes(job, trainer, signal_sent):
    stages = [{"finetune": {"epochs": 12, "batch_size": 16, "learning_rate": 0.1}}, EXPORT]
    training(job, stages, count=1152, train={"augment": {"flip": True, "shift": 1}})
    assert job.run("--output", job.folder / "straight").code == 0
    child = subprocess.Popen([str(find_program()), "run", str(job.folder / "pipeline.yaml")], stderr=subprocess.PIPE, text=True)
    told = ""
    while "epoch 3" not in told:
        line = child.stderr.readline()
        assert line, told
        told += line
    child.send_signal(signal_sent)
    rest = child.communicate(timeout=60)[1]
    assert "epoch 12" not in told + rest
    resumed = job.run("--force")
    assert resumed.code == 0, resumed.err
    assert "epoch 2:" not in resumed.err and "epoch 12:" in resumed.err
    assert (job.output / "model.ctkb").read_bytes() == (job.folder / "straight" / "model.ctkb").read_bytes()


def test_distill_learns_the_teacher_without_labels(job, trainer):
    stages = [{"distill": {"teacher": "teacher.onnx", "epochs": 8, "batch_size": 32, "learning_rate": 0.05}}, EXPORT]
    training(job, stages)
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    del config["data"]["train"]["labels"], config["data"]["evaluate"]
    np.savez(job.folder / "data.npz", x=columns(640)["x"])
    config["data"]["train"]["samples"] = 640
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    onnx.save(small_cnn(seed=9), job.folder / "teacher.onnx")
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    losses = [float(x) for x in re.findall(r"loss (\d+\.\d+)", outcome.err)]
    assert len(losses) == 8 and losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("classes, labels, code, words", [
    (6, "y", INPUT, ["stages.distill.teacher: expected the student's 4 classes, found 6"]),
    (None, "y", INPUT, ["teacher.onnx"]),
])
def test_teachers_that_do_not_fit_are_refused_before_work(job, trainer, classes, labels, code, words):
    training(job, [{"distill": {"teacher": "teacher.onnx"}}, EXPORT])
    if classes is not None:
        onnx.save(small_cnn(classes=classes), job.folder / "teacher.onnx")
    outcome = job.run()
    assert outcome.code == code and "distill ..." not in outcome.err
    for word in words:
        assert word in outcome.error


@pytest.mark.parametrize("keys, code, words", [
    ({"learning_rate": 0}, CONFIG, ["stages[0].finetune.learning_rate", 'found "0"']),
    ({"optimizer": "lion"}, CONFIG, ["expected sgd, adam or adamw", 'found "lion"']),
    ({"schedule": "linear"}, CONFIG, ["expected cosine, step or constant"]),
    ({"learning_rate": 1e3, "weight_decay": 1e3, "batch_norm": False}, CONFIG,
     ["finetune: epoch", "expected a finite loss", "at a learning rate of"]),
    ({"batch_size": 4}, INPUT, ["batch normalization: expected at least 8 samples a batch, found 4"]),
])
def test_settings_that_cannot_train_say_so(job, trainer, keys, code, words):
    training(job, [{"finetune": {"epochs": 2, **keys}}, EXPORT])
    outcome = job.run()
    assert outcome.code == code, outcome.err
    for word in words:
        assert word in outcome.error, outcome.error
    assert not (job.output / "model.ctkb").exists()


def test_labels_are_asked_for_where_a_hard_loss_needs_them(job, trainer):
    training(job, [FINETUNE, EXPORT])
    np.savez(job.folder / "data.npz", x=columns(640)["x"])
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    del config["data"]["train"]["labels"], config["data"]["evaluate"]
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    outcome = job.run()
    assert outcome.code == INPUT
    assert "stages.finetune: expected labels in data.train to train towards, found none. Give `labels:`" in outcome.error


def test_augmentation_of_what_is_no_picture_is_refused(job, trainer):
    model = model_of([onnx.helper.make_node("Gemm", ["x", "w"], ["y"], "head")], {"x": (["N", 8], 1)}, {"y": (["N", 4], 1)},
                     {"w": gaussian(8, 4)})
    training(job, [FINETUNE, EXPORT], train={"augment": {"flip": True}})
    job.write(model, {"x": gaussian(640, 8), "y": (np.arange(640) % 4).astype(np.int64)})
    outcome = job.run()
    assert outcome.code == CONFIG
    assert "data.train.augment: expected pictures [channels, height, width] to flip or shift" in outcome.error


def test_without_a_trainer_everything_else_runs_and_the_message_says_how_to_get_it(job, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy2(find_program().resolve(), alone / "compress")
    training(job, [FINETUNE, EXPORT])
    run = lambda *words: subprocess.run([alone / "compress", *words], capture_output=True, text=True, timeout=60)
    done = run("run", job.folder / "pipeline.yaml")
    assert done.returncode == CONFIG
    assert "stages.finetune: training: expected libctk_train.so beside the program" in done.stderr
    assert "Run `make trainer`" in done.stderr
    assert not job.output.exists()
    training(job, [EXPORT])
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    del config["data"]
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    assert run("run", job.folder / "pipeline.yaml").returncode == 0


def perturbed_checkpoint(source, target, share):
    """The checkpoint folder again, with so many standard deviations of noise in every matrix."""
    target.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy2(source / name, target / name)
    file = bytearray((source / "model.safetensors").read_bytes())
    begin = 8 + int.from_bytes(file[:8], "little")
    rng = np.random.default_rng(3)
    for name, info in sorted(json.loads(file[8:begin]).items()):
        if name == "__metadata__" or len(info["shape"]) != 2:
            continue
        first, last = (begin + at for at in info["data_offsets"])
        values = np.frombuffer(file[first:last], np.float32)
        file[first:last] = (values + share * values.std() * rng.normal(size=values.shape)).astype(np.float32).tobytes()
    (target / "model.safetensors").write_bytes(file)


def test_a_perturbed_language_model_learns_from_the_original(job, trainer, shared_data):
    """16 steps of 8 lines; the model takes one line at a time, padding is nowhere."""
    source = shared_data / "stories260k"
    perturbed_checkpoint(source, job.folder / "net", 0.3)
    lines = {"lines": True, "bos": True, "context": 64}
    evaluate = {"path": str(source / "tinystories_eval.txt"), "metric": "perplexity", **lines}
    config = {"model": "net", "output": "out", "seed": 0, "threads": 1,
              "data": {"train": {"path": str(source / "stories_calib_generated.txt"), **lines},
                       "select": {**evaluate, "samples": 4}, "evaluate": {**evaluate, "skip": 4}},
              "stages": [{"distill": {"teacher": str(source), "epochs": 2, "batch_size": 8, "optimizer": "adamw",
                                      "learning_rate": 0.001, "temperature": 1}},
                         {"export": {"formats": ["bundle"]}}, VALIDATE]}
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    metric = job.report()["metric"]
    assert metric["final"] < 0.5 * metric["baseline"], metric   # the original: about 5


@pytest.mark.slow
def test_one_epoch_with_a_teacher_mends_a_perturbed_resnet20(job, trainer, shared_data):
    """ResNet-20 with a tenth of noise in its weights, ResNet-56 as teacher, 4,000 pictures once."""
    cifar = shared_data / "cifar10"
    model = onnx.load(cifar / "resnet20_cifar10_jpeg.onnx")
    rng = np.random.default_rng(5)
    for weight in model.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.ndim == 4:
            noise = 0.25 * array.std() * rng.normal(size=array.shape)
            weight.CopyFrom(numpy_helper.from_array((array + noise).astype(np.float32), weight.name))
    onnx.save(model, job.folder / "net.onnx")
    keys = {"inputs": {"input": "x"}, "labels": "y", "scale": 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    job.pipeline(stages=[{"finetune": {"teacher": str(cifar / "resnet56_cifar10_jpeg.onnx"), "epochs": 1}}, EXPORT, VALIDATE])
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    config["data"] = {"train": {"path": str(cifar / "train_4000.npz"), "augment": {"flip": True, "shift": 4}, **keys},
                      "evaluate": {"path": str(cifar / "test_4000.npz"), "metric": "top1", **keys}}
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    outcome = job.run(timeout=900)
    assert outcome.code == 0, outcome.err
    report = job.report()
    print(report["metric"], report["stages"][0])
    assert report["metric"]["final"] > report["metric"]["baseline"] + 0.02


def recorded(job, arrays, teacher="teacher.npz", **keys):
    training(job, [{"distill": {"teacher": teacher, "epochs": 6, "batch_size": 32, "learning_rate": 0.1, **keys}}, EXPORT, VALIDATE])
    np.savez(job.folder / "teacher.npz", **arrays)
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    del config["data"]["train"]["labels"]
    config["data"]["train"].update({"skip": 64, "samples": 448})   # row 64 of the file has row 64 of the record
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    return job.run()


@pytest.mark.parametrize("form", ["probabilities", "logits", "labels"])
def test_what_a_teacher_said_is_enough_to_learn_from(job, trainer, form):
    """Without labels of its own data.train has nothing else to learn from."""
    y = columns(640)["y"]
    said = np.full((640, 4), 0.02, np.float32)
    said[np.arange(640), y] = 0.94
    outcome = recorded(job, {form: y if form == "labels" else np.log(said) if form == "logits" else said}, temperature=1)
    assert outcome.code == 0, outcome.err
    metric = job.report()["metric"]
    assert metric["final"] > metric["baseline"] + 0.35, metric


@pytest.mark.parametrize("arrays, words", [
    ({"other": np.zeros(4)}, 'expected an array "logits", "probabilities" or "labels", found none of them'),
    ({"logits": np.zeros((100, 4), np.float32)}, "expected a row for each of the 512 that data.train reads of its file, found 100"),
    ({"logits": np.zeros((640, 6), np.float32)}, "expected [rows, 4], found [640,6]"),
    ({"probabilities": np.full((640, 4), 1.5, np.float32)}, 'expected probabilities from 0 to 1, found "1.5'),
    ({"labels": np.full(640, 4)}, 'expected labels from 0 to below 4, found "4"'),
])
def test_records_that_do_not_fit_are_refused_before_work(job, trainer, arrays, words):
    outcome = recorded(job, arrays)
    assert outcome.code == INPUT and "distill ..." not in outcome.err
    assert words in outcome.error, outcome.error


def test_features_of_a_teacher_pull_the_students(job, trainer):
    """Of other weights; the written network holds what it held and no more."""
    training(job, [{"distill": {"teacher": "teacher.onnx", "epochs": 4, "batch_size": 32, "learning_rate": 0.05,
                                "features": ["auto"], "feature_weight": 2}}, EXPORT, VALIDATE])
    teacher = small_cnn(seed=9)
    onnx.save(teacher, job.folder / "teacher.onnx")
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    losses = [float(x) for x in re.findall(r"loss (\d+\.\d+)", outcome.err)]
    assert losses[-1] < 0.7 * losses[0], losses
    names = {i.name for i in onnx.load(job.output / "model.onnx").graph.initializer}
    assert names == {"w1", "b1", "w2", "b2", "w3", "b3"}


@pytest.mark.parametrize("features, words", [
    (["s = nothing"], 'stages.distill.features: expected a value or node of the teacher, found "nothing"'),
    (["s = g"], "expected values of the same places, channels aside, found [1,8,8,8] and [1,8,1,1]"),
    (["s"], 'expected "student value = teacher value" or auto alone, found "s"'),
])
def test_feature_pairs_that_do_not_exist_are_refused_before_work(job, trainer, features, words):
    training(job, [{"distill": {"teacher": "teacher.onnx", "features": features}}, EXPORT])
    onnx.save(small_cnn(seed=9), job.folder / "teacher.onnx")
    outcome = job.run()
    assert outcome.code == CONFIG and "distill ..." not in outcome.err
    assert words in outcome.error, outcome.error


def trained(job):
    """A model that knows the task, beside the pipeline: trained.onnx."""
    training(job, [{"finetune": {"epochs": 8, "batch_size": 32, "learning_rate": 0.1}}, {"export": {"formats": ["onnx"]}}])
    assert job.run().code == 0
    shutil.copy2(job.output / "model.onnx", job.folder / "trained.onnx")


def test_a_student_is_made_from_the_teacher(job, trainer):
    trained(job)
    training(job, [{"distill": {"student": {"width": 0.5}, "epochs": 8, "batch_size": 32, "learning_rate": 0.1}}, EXPORT, VALIDATE],
             model="trained.onnx")
    outcome = job.run("--output", job.folder / "small")
    assert outcome.code == 0, outcome.err
    weights = {i.name: numpy_helper.to_array(i).shape for i in onnx.load(job.folder / "small" / "model.onnx").graph.initializer}
    assert weights["w1"] == (4, 3, 3, 3) and weights["w2"] == (4, 4, 3, 3) and weights["w3"] == (4, 4)
    metric = json.loads((job.folder / "small" / "report.json").read_text())["metric"]
    assert metric["final"] > 0.5, metric   # of four classes; four channels know less than eight


def test_a_distillation_without_anybody_to_learn_from_is_refused(job):
    training(job, [{"distill": {"epochs": 1}}, EXPORT])
    outcome = job.run()
    assert outcome.code == CONFIG
    assert 'stages[0].distill: expected a teacher, found none. Add the key "teacher", or "student: {width: 0.5}"' in outcome.error
    training(job, [{"distill": {"student": {"depth": "every_second"}}}, EXPORT])
    outcome = job.run()
    assert outcome.code == CONFIG
    assert "stages.distill.student.depth: expected a model with two blocks at least" in outcome.error


def test_pruning_in_rounds_trains_between_them_and_meets_the_aim(job, trainer):
    prune = {"macs": 0.5, "round_to": 1, "iterations": 3, "ratios": "uniform",
             "finetune": {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}}
    trained(job)
    training(job, [{"prune": prune}, EXPORT, VALIDATE], model="trained.onnx")
    outcome = job.run("--output", job.folder / "small")
    assert outcome.code == 0, outcome.err
    assert len(re.findall(r"prune: epoch 2", outcome.err)) == 3, outcome.err
    report = json.loads((job.folder / "small" / "report.json").read_text())
    assert 0.3 < report["stages"][0]["macs"] / report["model"]["macs"] <= 0.5
    kept = {row["name"]: (row["units"], row["kept"]) for row in report["pruned"]}
    assert kept["conv1"][0] == 8 and kept["conv1"][1] < 8   # units as before the first round
    assert report["metric"]["final"] > 0.5
