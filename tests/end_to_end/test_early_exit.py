"""Stage early_exit: what it writes is worked out again with numpy and ONNX Runtime."""

import json

import numpy as np
import onnx
import pytest
from conftest import F32, find_program, model_of, onnxruntime_outputs
from onnx import helper
from quantized import gaussian

CONFIG, GATE = 2, 5
SELECT, EVALUATE, TRAIN = 256, 256, 512


@pytest.fixture(scope="session")
def trainer():
    """Beside the program, or in ../lib of it."""
    bin = find_program().resolve().parent
    if not any((folder / "libctk_train.so").exists() for folder in (bin, bin.parent / "lib")):
        pytest.skip("built without the trainer (make trainer)")


def deep_cnn(seed=0) -> onnx.ModelProto:
    """Three convolutions with Relu r1, r2, r3, then mean and Gemm. Input x [N,3,8,8], 4 classes."""
    r = np.random.default_rng(seed)
    weights, nodes, width = {}, [], [3, 8, 16, 16]
    for i in (1, 2, 3):
        weights[f"w{i}"] = r.normal(0, 0.25, (width[i], width[i - 1], 3, 3)).astype(np.float32)
        weights[f"b{i}"] = r.normal(0, 0.1, width[i]).astype(np.float32)
        nodes += [helper.make_node("Conv", ["x" if i == 1 else f"r{i - 1}", f"w{i}", f"b{i}"], [f"c{i}"], f"conv{i}", pads=[1, 1, 1, 1]),
                  helper.make_node("Relu", [f"c{i}"], [f"r{i}"], f"relu{i}")]
    weights["w"], weights["b"] = r.normal(0, 0.5, (4, 16)).astype(np.float32), np.zeros(4, np.float32)
    nodes += [helper.make_node("GlobalAveragePool", ["r3"], ["g"], "gap"), helper.make_node("Flatten", ["g"], ["f"], "flatten"),
              helper.make_node("Gemm", ["f", "w", "b"], ["y"], "head", transB=1)]
    return model_of(nodes, {"x": (["N", 3, 8, 8], F32)}, {"y": (["N", 4], F32)}, weights)


def shades(count=TRAIN + SELECT + EVALUATE):
    """Noise with brightness: classes 0 and 1 by one channel, 2 and 3 by whether two channels agree; some samples faint."""
    r, x, y = np.random.default_rng(5), gaussian(count, 3, 8, 8), np.arange(count) % 4
    strength = r.uniform(0.1, 1, count)
    for i, label in enumerate(y):
        a, b = r.choice([-1, 1], 2)
        x[i, 0] += strength[i] * (1.5, -1.5, 0, 0)[label]
        if label >= 2:
            x[i, 1] += strength[i] * a
            x[i, 2] += strength[i] * (a if label == 2 else -a)
    return {"x": x, "y": y.astype(np.int64)}


def write(job, stages, model=None, metric="top1", **extra):
    data = shades()
    job.write(model or deep_cnn(), data)
    path = job.pipeline(stages=stages, threads=1, **extra)
    config = json.loads(path.read_text())
    config["data"] = {"train": {"path": "data.npz", "samples": TRAIN},
                      "select": {"path": "data.npz", "skip": TRAIN, "samples": SELECT, "metric": metric},
                      "evaluate": {"path": "data.npz", "skip": TRAIN + SELECT, "metric": metric}}
    path.write_text(json.dumps(config, indent=1))
    return data["x"], data["y"]


FINETUNE = {"finetune": {"epochs": 6, "batch_size": 32, "learning_rate": 0.1}}
EXPORT, VALIDATE = {"export": {"formats": ["bundle", "onnx"]}}, {"validate": {"against": ["onnxruntime"]}}


def told(job) -> dict:
    return json.loads((job.output / "early_exit" / "exits.json").read_text())


def run_stages(job, exits, x, format="onnx"):
    """All stages on all samples -> logits of each way out [ways][samples, classes], confidences of the exits."""
    known, logits, sure = {"x": x}, [], []
    for stage in exits["stages"]:
        model = onnx.load(job.output / stage["files"][format])
        assert [i.name for i in model.graph.input] == stage["inputs"]
        outputs = onnxruntime_outputs(model, {name: known[name] for name in stage["inputs"]})
        known.update(zip(stage["outputs"], outputs))
        logits.append(known[stage["logits"]])
        if "confidence" in stage:
            sure.append(known[stage["confidence"]].reshape(-1))
    return logits, sure


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def ways(exits, sure):
    """Where each sample leaves."""
    way = np.full(len(sure[0]), len(sure))
    for i in reversed(range(len(sure))):
        way[sure[i] >= np.float32(exits["stages"][i]["threshold"])] = i
    return way


def test_thresholds_shares_and_costs_follow_from_the_stages(job, trainer):
    x, y = write(job, [FINETUNE, {"early_exit": {"at": ["r1", "r2"], "max_drop": "2 pt"}}, EXPORT, VALIDATE])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    exits = told(job)
    for name, rows in (("select", slice(TRAIN, TRAIN + SELECT)), ("test", slice(TRAIN + SELECT, None))):
        logits, sure = run_stages(job, exits, x[rows])
        for z, c in zip(logits, sure):
            np.testing.assert_allclose(c, softmax(z).max(1), atol=1e-6)
        way, figures = ways(exits, sure), exits["splits"][name]
        right = np.stack([z.argmax(1) == y[rows] for z in logits])
        np.testing.assert_allclose(figures["shares"], [np.mean(way == i) for i in range(len(logits))], atol=1.5 / SELECT)
        assert figures["metric"] == pytest.approx(right[way, np.arange(len(way))].mean(), abs=1.5 / SELECT)
        assert figures["metric_of_the_end"] == pytest.approx(right[-1].mean(), abs=1.5 / SELECT)
        until = np.cumsum([stage["macs"] for stage in exits["stages"]])
        assert figures["mean_macs"] == pytest.approx(until[way].mean(), rel=0.01)
        assert figures["saved_macs"] == pytest.approx(1 - until[way].mean() / exits["macs"], abs=0.01)
        if name == "select":
            assert right[-1].mean() - right[way, np.arange(len(way))].mean() <= 0.02 + 1e-9
            assert (way < len(sure)).any() and figures["saved_macs"] > 0
    # conv1 3*8*9*64, conv2 8*16*9*64, conv3 16*16*9*64, head 16*4
    assert exits["macs"] == 64 * 9 * (3 * 8 + 8 * 16 + 16 * 16) + 64
    stage = next(row for row in job.report()["stages"] if row["name"] == "early_exit")
    assert stage["accepted"] and stage["metric_after"] == pytest.approx(exits["splits"]["select"]["metric"])
    assert job.report()["metric"]["final"] == pytest.approx(exits["splits"]["test"]["metric"])


def test_the_threshold_of_one_exit_is_the_least_that_keeps_the_drop(job, trainer):
    """With a standard error to spare: the root of how many samples come out otherwise than at the end."""
    x, y = write(job, [FINETUNE, {"early_exit": {"at": ["relu2"], "max_drop": "3 pt"}}, EXPORT])
    assert job.run().code == 0
    exits, rows = told(job), slice(TRAIN, TRAIN + SELECT)
    logits, (sure,) = run_stages(job, exits, x[rows])
    head, end = (z.argmax(1) == y[rows] for z in logits)
    best = None
    order = np.argsort(-sure, kind="stable")
    for count in range(1, SELECT + 1):   # the surest `count` leave
        right = head[order[:count]].sum() + end[order[count:]].sum()
        changed = (head != end)[order[:count]].sum()
        if end.sum() - right + np.sqrt(changed) <= np.floor(0.03 * SELECT) + 1e-9:   # whole samples may be lost
            best = count
    threshold = exits["stages"][0]["threshold"]
    assert (sure >= threshold).sum() == best
    if best < SELECT:
        assert sure[order[best]] < threshold < sure[order[best - 1]]


def test_one_graph_says_what_the_stages_say_and_the_end_is_the_networks_own(job, trainer):
    model = deep_cnn()
    x, _ = write(job, [{"early_exit": {"every": 1, "max_drop": "5 pt"}}, EXPORT], model=model, metric="agreement")
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    exits = told(job)
    logits, sure = run_stages(job, exits, x[TRAIN:])
    way = ways(exits, sure)
    whole, = onnxruntime_outputs(onnx.load(job.output / "model.onnx"), {"x": x[TRAIN:]})
    chosen = np.stack(logits)[way, np.arange(len(way))]
    near = np.any([np.abs(c - np.float32(s["threshold"])) < 1e-6 for c, s in zip(sure, exits["stages"])], axis=0)
    np.testing.assert_allclose(whole[~near], chosen[~near], atol=1e-6)
    assert len(set(way)) > 1
    own, = onnxruntime_outputs(model, {"x": x[TRAIN:]})
    assert np.array_equal(logits[-1], own)   # bit for bit: the body was not trained


def test_coded_networks_have_coded_stages(job, trainer):
    formats = ["onnx_qdq", "bundle"]
    x, _ = write(job, [FINETUNE, {"early_exit": {"at": ["r2"], "max_drop": "2 pt"}}, {"calibrate": {"method": "minmax"}},
                       {"quantize": {"method": "rtn", "scheme": "w8a8_c"}}, {"export": {"formats": formats}}, VALIDATE])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    exits = told(job)
    logits, sure = run_stages(job, exits, x[TRAIN:], "onnx_qdq")
    operators = {n.op_type for n in onnx.load(job.output / exits["stages"][1]["files"]["onnx_qdq"]).graph.node}
    assert "DequantizeLinear" in operators
    way = ways(exits, sure)
    whole, = onnxruntime_outputs(onnx.load(job.output / "model_qdq.onnx"), {"x": x[TRAIN:]})
    chosen = np.stack(logits)[way, np.arange(len(way))]
    near = np.abs(sure[0] - np.float32(exits["stages"][0]["threshold"])) < 1e-5
    np.testing.assert_allclose(whole[~near], chosen[~near], atol=1e-5)
    assert (job.output / "early_exit" / "stage_1.ctkb").exists()
    results = [row["result"] for row in job.report()["checks"] if row["file"] == "model_qdq.onnx"]
    assert results and set(results) == {"agrees"}


def narrow_front() -> onnx.ModelProto:
    """Mean of the channels, 3 -> 64 -> 1 -> 4. A head behind the first layer costs 64 * 4 multiply-adds, what it saves 64 + 4."""
    r = np.random.default_rng(1)
    weights = {name: r.normal(0, 1, shape).astype(np.float32) for name, shape in {"w1": (3, 64), "w2": (64, 1), "w3": (1, 4)}.items()}
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["g"], "gap"), helper.make_node("Flatten", ["g"], ["f"], "flatten"),
             helper.make_node("MatMul", ["f", "w1"], ["h"], "first"), helper.make_node("Relu", ["h"], ["r"], "relu"),
             helper.make_node("MatMul", ["r", "w2"], ["s"], "second"), helper.make_node("Relu", ["s"], ["t"], "relu_2"),
             helper.make_node("MatMul", ["t", "w3"], ["y"], "third")]
    return model_of(nodes, {"x": (["N", 3, 8, 8], F32)}, {"y": (["N", 4], F32)}, weights)


@pytest.mark.parametrize("on_refusal", ["stop", "continue"])
def test_exits_that_save_nothing_are_refused(job, trainer, on_refusal):
    model = narrow_front()
    write(job, [{"early_exit": {"at": ["r"], "max_drop": "0 pt", "on_refusal": on_refusal}}, EXPORT], model=model, metric="agreement")
    outcome = job.run()
    words = "stages.early_exit.max_drop: expected exits at which samples leave within 0 pt"
    if on_refusal == "stop":
        assert outcome.code == GATE and words in outcome.error, outcome.err
        assert not (job.output / "model.onnx").exists()
        return
    assert outcome.code == 0, outcome.err
    assert any(row["code"] == "stage_refused" and words in row["text"] for row in job.report()["warnings"])
    assert not job.report()["stages"][0]["accepted"]
    assert not (job.output / "early_exit").exists()
    own = {i.name for i in model.graph.initializer}
    assert own <= {i.name for i in onnx.load(job.output / "model.onnx").graph.initializer}


@pytest.mark.parametrize("keys, metric, code, words", [
    ({"at": ["r9"], "max_drop": "1 pt"}, "top1", CONFIG,
     ['stages.early_exit.at: expected a value that the whole network narrows to', 'found "r9", which is no value or node of the model']),
    ({"at": ["y"], "max_drop": "1 pt"}, "top1", CONFIG, ['found "y", which is another']),
    ({"every": 50, "max_drop": "1 pt"}, "top1", CONFIG, ["expected from 1 to 16 places for a head, found 0"]),
    ({"max_drop": "1"}, "top1", CONFIG, ["max_drop", "1.0 pt"]),
    ({}, "top1", CONFIG, ["max_drop"]),
    ({"max_drop": "1 pt"}, "kl", CONFIG, ['expected the metric top1 or agreement, which are of single samples, found "kl"']),
])
def test_what_cannot_be_is_told(job, trainer, keys, metric, code, words):
    write(job, [{"early_exit": keys}, EXPORT], metric=metric)
    outcome = job.run()
    assert outcome.code == code, outcome.err
    for word in words:
        assert word in outcome.error, outcome.error


def test_it_stands_behind_training_and_before_codes(job, trainer):
    write(job, [{"calibrate": {"method": "minmax"}}, {"early_exit": {"max_drop": "1 pt"}}, EXPORT])
    outcome = job.run()
    assert outcome.code == CONFIG and 'expected "early_exit" before "calibrate"' in outcome.error, outcome.err
