"""Options of the stages that train: teachers of more classes, bfloat16, checkpoints, probabilities of attention."""

import json
import shutil

import numpy as np
import onnx
import pytest
from conftest import F32, model_of, run_measured, small_cnn
from onnx import helper
from test_training import EXPORT, INPUT, VALIDATE, columns, perturbed_checkpoint, recorded, trainer, training  # noqa: F401

HAS_BF16 = "avx512_bf16" in open("/proc/cpuinfo").read()


def wider_teacher(folder, classes=6):
    """A teacher of 6 classes for a student of 4."""
    model = small_cnn(seed=9, classes=classes)
    onnx.save(model, folder / "teacher.onnx")
    return model


def without_labels(job, count=640):
    config = json.loads((job.folder / "pipeline.yaml").read_text())
    del config["data"]["train"]["labels"], config["data"]["evaluate"]
    np.savez(job.folder / "data.npz", x=columns(count)["x"])
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))


def weights_of(path) -> dict:
    return {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}


def test_a_teacher_of_more_classes_is_cut_on_request_and_only_then(job, trainer):
    """The same as learning from a teacher whose last weights were cut off by hand: a softmax over the student's classes."""
    keys = {"epochs": 2, "batch_size": 32, "learning_rate": 0.05}
    training(job, [{"distill": {"teacher": "teacher.onnx", **keys}}, EXPORT])
    without_labels(job)
    model = wider_teacher(job.folder)
    refused = job.run()
    assert refused.code == INPUT and "distill ..." not in refused.err
    assert "expected the student's 4 classes, found 6" in refused.error and "cut_teacher: true" in refused.error
    cut = job.run("--set", "stages.distill.cut_teacher=true")
    assert cut.code == 0, cut.err
    learned = weights_of(job.output / "model.onnx")
    for weight in model.graph.initializer:
        if weight.name in ("w3", "b3"):
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight)[:4].copy(), weight.name))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    onnx.save(model, job.folder / "teacher.onnx")
    shutil.rmtree(job.output)
    assert job.run().code == 0
    by_hand = weights_of(job.output / "model.onnx")
    for name, weight in learned.items():
        assert np.array_equal(weight, by_hand[name]), name


def with_more_tokens(source, target, more):
    """The checkpoint folder again, with so many rows of noise behind its embedding, which is its head too."""
    target.mkdir()
    shutil.copy2(source / "tokenizer.json", target / "tokenizer.json")
    config = json.loads((source / "config.json").read_text())
    config["vocab_size"] += more
    (target / "config.json").write_text(json.dumps(config))
    file = (source / "model.safetensors").read_bytes()
    begin, head, data = 8 + int.from_bytes(file[:8], "little"), {}, b""
    for name, info in json.loads(file[8:begin]).items():
        if name == "__metadata__":
            continue
        bytes, (first, last) = b"", info["data_offsets"]
        if name == "model.embed_tokens.weight":
            bytes = np.random.default_rng(6).normal(size=(more, info["shape"][1])).astype(np.float32).tobytes()
            info["shape"][0] += more
        head[name] = {**info, "data_offsets": [len(data), len(data) + last - first + len(bytes)]}
        data += file[begin + first:begin + last] + bytes
    text = json.dumps(head).encode()
    (target / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_a_teacher_of_more_tokens_teaches_the_students_alone(job, trainer, shared_data):
    """B073: 512 tokens against 520. Cut, its softmax runs over 512: the student learns what the teacher of 512 teaches."""
    source, lines, learned = shared_data / "stories260k", {"lines": True, "bos": True, "context": 32}, {}
    perturbed_checkpoint(source, job.folder / "net", 0.3)
    with_more_tokens(source, job.folder / "more", 8)
    for teacher, cuts in ((source, False), (job.folder / "more", True), (job.folder / "more", False)):
        keys = {"teacher": str(teacher), "epochs": 1, "batch_size": 8, "optimizer": "adamw", "learning_rate": 0.001, "cut_teacher": cuts}
        config = {"model": "net", "output": f"out_{teacher.name}" if teacher == source or cuts else "refused", "seed": 0, "threads": 1,
                  "data": {"train": {"path": str(source / "stories_calib_generated.txt"), "samples": 32, **lines},
                           "select": {"path": str(source / "tinystories_eval.txt"), "metric": "perplexity", "samples": 4, **lines}},
                  "stages": [{"distill": keys}, {"export": {"formats": ["onnx"]}}]}
        (job.folder / "pipeline.yaml").write_text(json.dumps(config))
        outcome = job.run()
        if teacher != source and not cuts:
            assert outcome.code == INPUT and "distill ..." not in outcome.err
            assert "stages.distill.teacher: expected the student's 512 classes, found 520" in outcome.error
            continue
        assert outcome.code == 0, outcome.err
        learned[cuts] = weights_of(job.folder / f"out_{teacher.name}" / "model.onnx")
    assert learned[True].keys() == learned[False].keys()
    for name, weight in learned[True].items():
        np.testing.assert_allclose(weight, learned[False][name], atol=1e-4, err_msg=name)   # 520 columns may round otherwise
    stage = json.loads((job.folder / "out_more" / "report.json").read_text())["stages"][0]
    assert stage["metric_after"] < 0.9 * stage["metric_before"], stage   # perplexity


def test_recorded_outputs_of_more_classes_are_cut_on_request(job, trainer):
    y = columns(640)["y"]
    said = np.full((640, 7), 0.01, np.float32)
    said[np.arange(640), y], said[:, 6] = 0.3, 0.65   # surest of a class that the student lacks
    refused = recorded(job, {"probabilities": said}, temperature=1)
    assert refused.code == INPUT and "cut_teacher: true" in refused.error, refused.err
    outcome = recorded(job, {"probabilities": said}, temperature=1, cut_teacher=True)
    assert outcome.code == 0, outcome.err
    metric = job.report()["metric"]
    assert metric["final"] > metric["baseline"] + 0.3, metric


@pytest.mark.skipif(HAS_BF16, reason="this processor multiplies bfloat16")
def test_bfloat16_is_left_alone_where_it_is_slower_unless_forced(job, trainer):
    learned = {}
    for word in ("none", "bf16", "forced_bf16"):
        training(job, [{"finetune": {"epochs": 2, "batch_size": 32, "learning_rate": 0.1, "autocast": word}}, EXPORT, VALIDATE])
        outcome = job.run("--output", job.folder / word)
        assert outcome.code == 0, outcome.err
        report = json.loads((job.folder / word / "report.json").read_text())
        told = "stages.finetune.autocast: expected a processor that multiplies bfloat16 (AVX512_BF16), found none"
        assert any(told in row["text"] for row in report["warnings"]) == (word == "bf16"), report["warnings"]
        learned[word] = weights_of(job.folder / word / "model.onnx")["w2"]
    assert np.array_equal(learned["none"], learned["bf16"])
    assert not np.array_equal(learned["none"], learned["forced_bf16"])
    assert report["metric"]["final"] > report["metric"]["baseline"] + 0.2, report["metric"]   # it learns all the same


BLOCKS, BATCH, WIDTH, INNER = 24, 8192, 128, 512


def residual_mlp() -> onnx.ModelProto:
    r, nodes, weights, h = np.random.default_rng(2), [], {}, "x"
    for i in range(BLOCKS):
        weights[f"w{i}"] = r.normal(0, 0.05, (WIDTH, INNER)).astype(np.float32)
        weights[f"v{i}"] = r.normal(0, 0.02, (INNER, WIDTH)).astype(np.float32)
        nodes += [helper.make_node("MatMul", [h, f"w{i}"], [f"m{i}"], f"up{i}"), helper.make_node("Relu", [f"m{i}"], [f"r{i}"], f"relu{i}"),
                  helper.make_node("MatMul", [f"r{i}", f"v{i}"], [f"b{i}"], f"down{i}"), helper.make_node("Add", [h, f"b{i}"], [f"h{i}"], f"add{i}")]
        h = f"h{i}"
    weights["head"] = r.normal(0, 0.1, (WIDTH, 10)).astype(np.float32)
    nodes.append(helper.make_node("MatMul", [h, "head"], ["y"], "head_product"))
    return model_of(nodes, {"x": (["N", WIDTH], F32)}, {"y": (["N", 10], F32)}, weights)


def test_checkpoints_save_memory_and_change_no_bit(job, trainer, product_build):
    """Kept without: 24 blocks of two inner values of 8 MB and two of 2 MB; with: a value of 2 MB a block, and one block."""
    r = np.random.default_rng(4)
    job.write(residual_mlp(), {"x": r.normal(size=(BATCH, WIDTH)).astype(np.float32), "y": r.integers(0, 10, BATCH)})
    peaks, files = {}, {}
    for word in ("false", "true"):
        stages = [{"finetune": {"epochs": 1, "batch_size": BATCH, "learning_rate": 0.01, "checkpoint_blocks": word == "true"}}, EXPORT]
        path = job.pipeline(stages=stages, threads=1)
        config = json.loads(path.read_text())
        config["data"] = {"train": {"path": "data.npz", "samples": BATCH}}
        path.write_text(json.dumps(config))
        outcome, usage = run_measured(["run", path, "--output", job.folder / word], job.folder / "log")
        assert outcome.code == 0, outcome.err
        peaks[word], files[word] = usage.ru_maxrss / 1024, (job.folder / word / "model.ctkb").read_bytes()
    print(peaks)
    assert files["true"] == files["false"]
    assert peaks["true"] < peaks["false"] - 250, peaks   # MB


def test_checkpoints_and_batch_norms_do_not_go_together(job, trainer):
    training(job, [{"finetune": {"checkpoint_blocks": True}}, EXPORT])
    outcome = job.run()
    assert outcome.code == 2 and "checkpoint_blocks: expected a training without batch normalizations" in outcome.error, outcome.err


def test_probabilities_of_attention_draw_a_language_model_to_its_teacher(job, trainer, shared_data):
    """Auto pairs the Attention nodes, whose weights then move the student."""
    source = shared_data / "stories260k"
    perturbed_checkpoint(source, job.folder / "net", 0.3)
    lines = {"lines": True, "bos": True, "context": 64}
    for weight in (0, 50):
        keys = {"teacher": str(source), "epochs": 2, "batch_size": 8, "optimizer": "adamw", "learning_rate": 0.001, "temperature": 1,
                "features": ["auto"], "feature_loss": "attention_probabilities", "feature_weight": weight}
        config = {"model": "net", "output": f"out{weight}", "seed": 0, "threads": 1,
                  "data": {"train": {"path": str(source / "stories_calib_generated.txt"), **lines},
                           "select": {"path": str(source / "tinystories_eval.txt"), "metric": "perplexity", "samples": 4, **lines}},
                  "stages": [{"distill": keys}, {"export": {"formats": ["bundle"]}}]}
        (job.folder / "pipeline.yaml").write_text(json.dumps(config))
        outcome = job.run()
        assert outcome.code == 0, outcome.err
    assert (job.folder / "out0" / "model.ctkb").read_bytes() != (job.folder / "out50" / "model.ctkb").read_bytes()


def test_probabilities_are_asked_of_networks_that_have_them(job, trainer):
    training(job, [{"distill": {"teacher": "teacher.onnx", "features": ["auto"], "feature_loss": "attention_probabilities"}}, EXPORT])
    onnx.save(small_cnn(seed=9), job.folder / "teacher.onnx")
    outcome = job.run()
    assert outcome.code == 2, outcome.err
    assert "stages.distill.features: auto: expected Attention nodes in student and teacher, found none in one of them" in outcome.error
