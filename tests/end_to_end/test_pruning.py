"""Cutting channels: the written network is the one numpy makes by slicing the original's weights, run by ONNX Runtime."""

import json

import numpy as np
import onnx
import pytest
from conftest import model_of, onnxruntime_outputs, relative_error, small_cnn
from onnx import numpy_helper
from quantized import F32, gaussian, node


def weights_of(model) -> dict[str, np.ndarray]:
    return {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}


def sliced(model, cuts, groups=()) -> onnx.ModelProto:
    """The reference: `cuts` {weight: {axis: kept indices}}, `groups` {node: group}."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for initializer in copy.graph.initializer:
        array = numpy_helper.to_array(initializer)
        for axis, kept in cuts.get(initializer.name, {}).items():
            array = np.take(array, kept, axis)
        initializer.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), initializer.name))
    for n in copy.graph.node:
        for attribute in n.attribute:
            if attribute.name == "group" and n.name in dict(groups):
                attribute.i = dict(groups)[n.name]
    return copy


def keep(count, units, *sites):
    """The `count` units of largest sum of |w| over all sites, each over its mean. A site is (array, axis): several
    indices a unit lie together; or (array, axis, "apart"): they stand `units` apart."""
    total = 0
    for array, axis, *apart in sites:
        sums = np.abs(np.moveaxis(array, axis, 0)).astype(np.float64).reshape(array.shape[axis], -1).sum(1)
        sums = sums.reshape(-1, units).sum(0) if apart else sums.reshape(units, -1).sum(1)
        total = total + sums / sums.mean()
    return [int(i) for i in sorted(np.argsort(-total, kind="stable")[:count])]


def cut(job, model, prune, data=False, stages=(), **keys):
    shape = [d.dim_value or 64 for d in model.graph.input[0].type.tensor_type.shape.dim]
    job.write(model, {"x": gaussian(*shape, seed=9)})
    job.pipeline(stages=[{"prune": {"round_to": 1, **prune}}, {"export": {"formats": ["onnx"]}}, *stages],
                 calibrate={"samples": 48} if data else None, **keys)
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    return onnx.load(next(job.output.glob("*.onnx")))


def expect_same(got, want, shape):
    feeds = {"x": gaussian(*shape, seed=3)}
    assert relative_error(onnxruntime_outputs(got, feeds)[0], onnxruntime_outputs(want, feeds)[0]) < 1e-5


def conv(name, x, y=None, **attributes):
    return node("Conv", [x, f"{name}.w", f"{name}.b"], [y or name], name, **attributes)


def conv_weights(**shapes):
    weights = {}
    for seed, (name, shape) in enumerate(shapes.items()):
        weights[f"{name}.w"] = gaussian(*shape, seed=seed, scale=0.4)
        weights[f"{name}.b"] = gaussian(shape[0], seed=seed + 50, scale=0.2)
    return weights


IMAGE = {"x": (["N", 3, 6, 6], F32)}


def test_b070_channels_are_gone_and_not_zeroed(job):
    nodes = [conv("a", "x"), node("Relu", ["a"], ["r"]), conv("b", "r", "y")]
    model = model_of(nodes, IMAGE, {"y": (["N", 8, 6, 6], F32)}, conv_weights(a=(16, 3, 1, 1), b=(8, 16, 1, 1)))
    got = cut(job, model, {"pruning_ratio": 0.5})
    assert weights_of(got)["a.w"].shape == (8, 3, 1, 1) and weights_of(got)["b.w"].shape == (8, 8, 1, 1)
    w = weights_of(model)
    kept = keep(8, 16, (w["a.w"], 0), (w["b.w"], 1))
    expect_same(got, sliced(model, {"a.w": {0: kept}, "a.b": {0: kept}, "b.w": {1: kept}}), (2, 3, 6, 6))
    report = job.report()
    stage = report["stages"][0]
    assert stage["parameters"] == sum(w.size for w in weights_of(got).values())
    assert report["model"]["macs"] == 36 * (3 * 16 + 16 * 8) and stage["macs"] == 36 * (3 * 8 + 8 * 8)
    rows = {row["name"]: row for row in report["pruned"]}
    assert (rows["a"]["units"], rows["a"]["kept"], rows["a"]["reason"]) == (16, 8, "")
    assert rows["b"]["kept"] == 8 and 'leaves the network as "y"' in rows["b"]["reason"]


def test_b061_groups_keep_their_size(job):
    nodes = [conv("a", "x"), conv("g", "a", group=4), conv("c", "g", "y")]
    model = model_of(nodes, IMAGE, {"y": (["N", 2, 6, 6], F32)}, conv_weights(a=(8, 3, 1, 1), g=(8, 2, 1, 1), c=(2, 8, 1, 1)))
    got = cut(job, model, {"pruning_ratio": 0.5})
    w = weights_of(model)
    (a,) = keep(1, 2, (w["a.w"], 0, "apart"), (w["g.w"], 1))
    (g,) = keep(1, 2, (w["g.w"], 0, "apart"), (w["c.w"], 1, "apart"))
    of_a, of_g = [a, a + 2, a + 4, a + 6], [g, g + 2, g + 4, g + 6]
    cuts = {"a.w": {0: of_a}, "a.b": {0: of_a}, "g.w": {0: of_g, 1: [a]}, "g.b": {0: of_g}, "c.w": {1: of_g}}
    expect_same(got, sliced(model, cuts), (2, 3, 6, 6))


@pytest.mark.parametrize("multiplier", [1, 2])
def test_b061_depthwise_shrinks_with_its_producer(job, multiplier):
    nodes = [conv("a", "x"), conv("d", "a", group=6), conv("c", "d", "y")]
    model = model_of(nodes, IMAGE, {"y": (["N", 2, 6, 6], F32)},
                     conv_weights(a=(6, 3, 1, 1), d=(6 * multiplier, 1, 1, 1), c=(2, 6 * multiplier, 1, 1)))
    got = cut(job, model, {"pruning_ratio": 0.5})
    w = weights_of(model)
    a = keep(3, 6, (w["a.w"], 0), (w["d.w"], 0), (w["c.w"], 1))
    d = [multiplier * i + j for i in a for j in range(multiplier)]
    cuts = {"a.w": {0: a}, "a.b": {0: a}, "d.w": {0: d}, "d.b": {0: d}, "c.w": {1: d}}
    expect_same(got, sliced(model, cuts, {"d": 3}), (2, 3, 6, 6))


@pytest.mark.parametrize("twice", [True, False])
def test_b063_concat_offsets(job, twice):
    shapes = {"c1": (4, 3, 1, 1)} if twice else {"c1": (4, 3, 1, 1), "c2": (6, 3, 1, 1)}
    nodes = [conv(name, "x") for name in shapes]
    parts = ["c1", "c1"] if twice else ["c1", "c2"]
    width = 8 if twice else 10
    nodes += [node("Concat", parts, ["cat"], axis=1), conv("c3", "cat", "y")]
    model = model_of(nodes, IMAGE, {"y": (["N", 4, 6, 6], F32)}, conv_weights(**shapes, c3=(4, width, 1, 1)))
    got = cut(job, model, {"pruning_ratio": 0.5})
    w = weights_of(model)
    if twice:
        kept = {"c1": keep(2, 4, (w["c1.w"], 0), (w["c3.w"], 1, "apart"))}
    else:
        kept = {"c1": keep(2, 4, (w["c1.w"], 0), (w["c3.w"][:, :4], 1)), "c2": keep(3, 6, (w["c2.w"], 0), (w["c3.w"][:, 4:], 1))}
    cuts = {f"{n}.{part}": {0: k} for n, k in kept.items() for part in "wb"}
    cuts["c3.w"] = {1: kept["c1"] + [4 + i for i in kept["c1" if twice else "c2"]]}
    expect_same(got, sliced(model, cuts), (2, 3, 6, 6))


def test_b064_branches_of_an_add_keep_the_same(job):
    nodes = [conv("c1", "x"), conv("c2", "x"), node("Add", ["c1", "c2"], ["s"]), node("GlobalAveragePool", ["s"], ["p"]),
             node("Flatten", ["p"], ["f"]), node("Gemm", ["f", "fc.w"], ["y"], "fc", transB=1)]
    weights = conv_weights(c1=(4, 3, 1, 1), c2=(4, 3, 1, 1)) | {"fc.w": gaussian(2, 4, seed=8)}
    model = model_of(nodes, IMAGE, {"y": (["N", 2], F32)}, weights)
    got = cut(job, model, {"pruning_ratio": 0.5})
    kept = keep(2, 4, (weights["c1.w"], 0), (weights["c2.w"], 0), (weights["fc.w"], 1))
    cuts = {f"{n}.{part}": {0: kept} for n in ("c1", "c2") for part in "wb"} | {"fc.w": {1: kept}}
    expect_same(got, sliced(model, cuts), (2, 3, 6, 6))


def test_b067_squeeze_excite_is_one_group(job):
    nodes = [conv("a", "x"), node("GlobalAveragePool", ["a"], ["p"]), conv("down", "p"), node("Relu", ["down"], ["r"]),
             conv("up", "r"), node("Sigmoid", ["up"], ["gate"]), node("Mul", ["a", "gate"], ["m"]), conv("c", "m", "y")]
    model = model_of(nodes, IMAGE, {"y": (["N", 4, 6, 6], F32)},
                     conv_weights(a=(8, 3, 1, 1), down=(2, 8, 1, 1), up=(8, 2, 1, 1), c=(4, 8, 1, 1)))
    got = cut(job, model, {"pruning_ratio": 0.5, "ignore": ["down"]})
    w = weights_of(model)
    kept = keep(4, 8, (w["a.w"], 0), (w["down.w"], 1), (w["up.w"], 0), (w["c.w"], 1))
    cuts = {f"{n}.{part}": {0: kept} for n in ("a", "up") for part in "wb"} | {"down.w": {1: kept}, "c.w": {1: kept}}
    expect_same(got, sliced(model, cuts), (2, 3, 6, 6))
    assert {row["name"]: row["reason"] for row in job.report()["pruned"]}["down"] == "matches `ignore`"


def test_b069_no_layer_is_emptied_and_widths_are_multiples(job):
    weights = conv_weights(a=(12, 3, 1, 1), b=(12, 12, 1, 1), c=(16, 12, 1, 1), d=(2, 16, 1, 1))
    weights["b.w"] *= 0.001
    nodes = [conv("a", "x"), conv("b", "a"), conv("c", "b"), conv("d", "c", "y")]
    model = model_of(nodes, IMAGE, {"y": (["N", 2, 6, 6], F32)}, weights)
    job.write(model, {"x": gaussian(64, 3, 6, 6)})
    job.pipeline(stages=[{"prune": {"ratios": "global", "pruning_ratio": 0.35, "round_to": 8}}, {"export": {"formats": ["onnx"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    for row in job.report()["pruned"][:3]:
        assert row["kept"] == row["units"] or (row["kept"] % 8 == 0 and row["kept"] > 0), row
    # 0.7 of 40 channels is more than steps of 8 can give: told before any work, with what was asked.
    job.pipeline(stages=[{"prune": {"ratios": "global", "pruning_ratio": 0.7, "round_to": 8}}, {"export": {"formats": ["onnx"]}}],
                 output="other")
    outcome = job.run()
    assert outcome.code == 2 and "stages.prune.pruning_ratio" in outcome.error and "0.7" in outcome.error
    assert not (job.folder / "other").exists()


@pytest.mark.parametrize("prune, words", [
    ({"pruning_ratio": 1}, ["pruning_ratio", "below 1", '"1"']),
    ({"macs": 0.5, "max_ratio": 1}, ["max_ratio", "below 1"]),
    ({"macs": 0.001}, ["macs", "expected at least", "0.001", "max_ratio"]),
    ({}, ["macs", "pruning_ratio", "blocks", "found none"]),
    ({"blocks": 1}, ["data.calibrate"]),
    ({"macs": 0.5, "iterations": 3}, ["stages[0].prune.iterations", "finetune", '"3"']),
    ({"macs": 0.5, "pruning_ratio": 0.5}, ["either macs or pruning_ratio"]),
    ({"macs": 0.5, "ignore": ["conv9"]}, ["stages.prune.ignore", "conv9", "conv1"]),
    ({"macs": 0.5, "targets": ["re:nothing.*"]}, ["stages.prune.targets", "re:nothing"]),
    ({"macs": 0.5, "ignore": ["re:conv.*"]}, ["expected a layer whose channels can be cut", "ignore"]),
    ({"macs": 0.5, "method": "l3"}, ["l3", "l1"]),
    ({"macs": 0.5, "ratios": "sensitivity"}, ["data.calibrate"]),
    ({"macs": 0.5, "repair": True}, ["data.calibrate"]),
    ({"macs": 0.5, "method": "taylor"}, ["data.calibrate"]),
    ({"macs": 0.5, "round_to": "0"}, ["round_to", "auto"]),
])
def test_refused_before_any_work(job, prune, words):
    job.write(small_cnn(), {"x": gaussian(64, 3, 8, 8)})
    job.pipeline(stages=[{"prune": prune}, {"export": {"formats": ["onnx"]}}])
    outcome = job.run()
    assert outcome.code == 2, outcome.err
    for word in words:
        assert word in outcome.error
    assert not job.output.exists()


def test_the_repaired_network_is_nearer_to_the_float_one(job):
    errors = {}
    for repair in (False, True):
        job.output = job.folder / f"out{repair}"
        model = cut(job, small_cnn(), {"macs": 0.6, "repair": repair, "ratios": "uniform"}, data=True, output=f"out{repair}")
        feeds = {"x": gaussian(32, 3, 8, 8, seed=3)}
        want = onnxruntime_outputs(small_cnn(), feeds)[0]
        errors[repair] = float(((onnxruntime_outputs(model, feeds)[0] - want) ** 2).mean())
        assert bool(job.report()["repaired"]) == repair
    assert errors[True] < 0.8 * errors[False]


def test_curves_are_told_and_a_second_run_is_cached(job):
    cut(job, small_cnn(), {"macs": 0.7}, data=True)
    report = job.report()
    rows = {row["name"]: row for row in report["pruned"]}
    curve = rows["conv1"]["curve"]
    assert curve[0] == {"width": 8, "loss": 0.0}
    assert [p["loss"] for p in curve] == sorted(p["loss"] for p in curve)
    assert report["stages"][0]["macs"] <= 0.7 * report["model"]["macs"]
    assert "## Channels" in (job.output / "report.md").read_text()
    outcome = job.run("--force")
    assert outcome.code == 0, outcome.err
    again = job.report()
    assert again["stages"][0]["cached"] and again["pruned"] == report["pruned"]


@pytest.mark.parametrize("method", ["l1", "l2", "random", "activation", "taylor", "hessian"])
def test_every_method_repeats(job, method):
    outputs = []
    for name in ("one", "two"):
        job.output = job.folder / name
        cut(job, small_cnn(), {"macs": 0.6, "method": method}, data=True, output=name)
        outputs.append(next(job.output.glob("*.onnx")).read_bytes())
    assert outputs[0] == outputs[1]


def test_a_pruned_network_goes_on_to_be_quantized(job):
    job.write(small_cnn(), {"x": gaussian(192, 3, 8, 8)})
    job.pipeline(calibrate={"samples": 128}, evaluate={"skip": 128, "metric": "agreement"},
                 stages=[{"prune": {"macs": 0.8, "round_to": 1}}, {"calibrate": {"method": "mse"}},
                         {"quantize": {"method": "rtn", "scheme": "w8a8_c"}}, {"export": {"formats": ["onnx_qdq", "bundle"]}},
                         {"validate": {"against": ["onnxruntime"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    report = job.report()
    assert any(row["kept"] < row["units"] for row in report["pruned"])
    assert {row["scheme"] for row in report["layers"]} == {"w8a8_c"}
    assert report["size"]["before"] > report["size"]["after"]


@pytest.mark.parametrize("targets", [["re:.*q_proj"], ["re:.*gate_proj"]])
def test_a_pruned_checkpoint_says_its_own_sizes(job, shared_data, targets):
    """config.json goes with the tensors: what Transformers computes from the folder is what the bundle gives."""
    config = json.loads((shared_data / "stories260k/config.json").read_text())
    job.pipeline(model=str(shared_data / "stories260k"), stages=[
        {"prune": {"pruning_ratio": 0.25, "ratios": "uniform", "round_to": 1, "targets": targets}},
        {"export": {"formats": ["safetensors", "bundle"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    written = json.loads((job.output / "hf/config.json").read_text())
    if "q_proj" in targets[0]:
        assert (written["num_attention_heads"], written["num_key_value_heads"], written["head_dim"]) == (6, 3, 8)
    else:
        assert written["intermediate_size"] == 129
    assert {k for k in config if written.get(k) != config[k]} <= {"num_attention_heads", "num_key_value_heads", "intermediate_size"}
    job.pipeline(model="out/hf", output="again", stages=[{"export": {"formats": ["bundle"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert (job.folder / "again/model.ctkb").stat().st_size == pytest.approx((job.output / "model.ctkb").stat().st_size, rel=0.02)


def test_a_network_of_smaller_activations_is_compared_batch_by_batch(job):
    """The cut network would take larger batches than the float one whose outputs it is held to."""
    nodes = [conv("a", "x"), node("Relu", ["a"], ["r"]), conv("b", "r"), node("GlobalAveragePool", ["b"], ["p"]), node("Flatten", ["p"], ["y"])]
    model = model_of(nodes, {"x": (["N", 3, 112, 112], F32)}, {"y": (["N", 4], F32)}, conv_weights(a=(32, 3, 1, 1), b=(4, 32, 1, 1)))
    job.write(model, {"x": gaussian(60, 3, 112, 112)})
    job.pipeline(calibrate={"samples": 20}, evaluate={"skip": 40, "metric": "kl"},
                 stages=[{"prune": {"macs": 0.5, "repair": False}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    assert job.report()["metric"]["final"] >= 0


def residual_chain(scales):
    """Conv 3 -> 8, then for each scale a residual block whose branch is so large, then mean and head."""
    nodes, weights = [conv("stem", "x"), node("Relu", ["stem"], ["h0"])], conv_weights(stem=(8, 3, 1, 1))
    for i, scale in enumerate(scales):
        nodes += [conv(f"a{i}", f"h{i}"), node("Relu", [f"a{i}"], [f"r{i}"]), conv(f"b{i}", f"r{i}"),
                  node("Add", [f"b{i}", f"h{i}"], [f"s{i}"]), node("Relu", [f"s{i}"], [f"h{i + 1}"])]
        weights |= conv_weights(**{f"a{i}": (8, 8, 1, 1), f"b{i}": (8, 8, 1, 1)})
        weights[f"b{i}.w"] = weights[f"b{i}.w"] * np.float32(scale)
        weights[f"b{i}.b"] = weights[f"b{i}.b"] * np.float32(scale)
    nodes += [node("GlobalAveragePool", [f"h{len(scales)}"], ["g"]), node("Flatten", ["g"], ["f"]), node("Gemm", ["f", "head"], ["y"], transB=1)]
    weights["head"] = gaussian(4, 8, seed=90)
    return model_of(nodes, IMAGE, {"y": (["N", 4], F32)}, weights)


def test_b070_whole_blocks_go_least_first_and_the_rest_is_as_it_was(job):
    got = cut(job, residual_chain([1, 0.01, 1, 0.02]), {"blocks": 2}, data=True)
    names = {n.name for n in got.graph.node if n.op_type == "Conv"}
    assert names == {"stem", "a0", "b0", "a2", "b2"}
    rows = [row for row in job.report()["pruned"] if row["kept"] == 0]
    assert [row["name"] for row in rows] == ["a1", "a3"] and all("whole block" in row["reason"] for row in rows)
    reference = residual_chain([1, 0, 1, 0])   # the same without what those two add
    expect_same(got, reference, (4, 3, 6, 6))


def test_more_blocks_than_can_go_are_refused_before_any_work(job):
    job.write(residual_chain([1, 1]), {"x": gaussian(64, 3, 6, 6)})
    job.pipeline(stages=[{"prune": {"blocks": 3}}, {"export": {"formats": ["onnx"]}}], calibrate={"samples": 32})
    outcome = job.run()
    assert outcome.code == 2
    assert 'stages.prune.blocks: expected at most 2, the blocks whose input and output have one shape and add up, found "3"' in outcome.error
    assert not job.output.exists()


def wide_pair():
    return model_of([conv("a", "x", pads=[1] * 4), node("Relu", ["a"], ["r"]), conv("b", "r", "y", pads=[1] * 4)], {"x": (["N", 3, 24, 24], F32)},
                    {"y": (["N", 8, 24, 24], F32)}, conv_weights(a=(96, 3, 3, 3), b=(8, 96, 3, 3)))


def test_a_latency_is_an_aim_that_is_measured(job):
    job.write(wide_pair(), {"x": gaussian(16, 3, 24, 24)})
    job.pipeline(stages=[{"prune": {"latency": "70 %", "ratios": "uniform"}}, {"export": {"formats": ["onnx"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    row = next(row for row in job.report()["pruned"] if row["name"] == "a")
    assert row["units"] == 96 and 8 <= row["kept"] < 96, row
    job.pipeline(stages=[{"prune": {"latency": "1 %", "max_ratio": 0.5, "ratios": "uniform"}}, {"export": {"formats": ["onnx"]}}], output="other")
    outcome = job.run()
    assert outcome.code == 2
    assert "stages.prune.latency: expected at least" in outcome.error and 'found "1 %"' in outcome.error
    job.pipeline(stages=[{"prune": {"latency": "50 %", "macs": 0.5}}, {"export": {"formats": ["onnx"]}}])
    outcome = job.run()
    assert outcome.code == 2 and "stages[0].prune.latency: expected one aim" in outcome.error


@pytest.mark.parametrize("aim", [{"latency": "70 %"}, {"macs": 0.6, "ratios": "timed"}])
def test_curves_are_timed_where_time_matters(job, aim):
    job.write(wide_pair(), {"x": gaussian(64, 3, 24, 24)})
    job.pipeline(stages=[{"prune": aim}, {"export": {"formats": ["onnx"]}}], calibrate={"samples": 32}, evaluate={"skip": 48})
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    row = next(row for row in job.report()["pruned"] if row["name"] == "a")
    widths = [point["width"] for point in row["curve"]]
    # All eighths of 96 would be 10 widths; at most those are left that are quicker than every wider one.
    assert widths[0] == 96 and widths == sorted(widths, reverse=True) and row["kept"] in widths and row["kept"] < 96


def joint_run(job, **changes):
    job.write(wide_pair(), {"x": gaussian(160, 3, 24, 24)})
    keys = {"budget": {"size": "13 %"}, "calibrate": {"samples": 32}, "evaluate": {"skip": 128}, **changes}
    prune = {"ratios": "joint", "round_to": 1, **keys.pop("prune", {})}
    without = keys.pop("without", ())
    stages = [{"prune": prune}, {"calibrate": {}}, {"sensitivity": {"metric": "kl"}}, {"search": {"schemes": ["w8a8_c", "w4a8_c"]}},
              {"quantize": {"method": "rtn"}}, {"export": {"formats": ["bundle"]}}, {"validate": {}}]
    job.pipeline(stages=[stage for stage in stages if next(iter(stage)) not in without], threads=1, **keys)
    return job.run()


def test_widths_and_schemes_share_a_budget(job):
    outcome = joint_run(job)
    assert outcome.code == 0, outcome.err
    report = job.report()
    text = next(w["text"] for w in report["warnings"] if w["code"] == "joint_widths")
    joint = float(text.split("before any tuning: ")[1].split(" ")[0])
    after = float(text.split("in the same sums: ")[1])
    kept = next(row["kept"] for row in report["pruned"] if row["name"] == "a")
    assert joint <= after and 10 <= kept < 96
    size = next(row for row in report["budget"] if row["name"] == "size")
    assert size["met"] and size["measured"] <= size["limit"]
    # The widths answer the budget: another one is another answer, in the same folder.
    wider = joint_run(job, budget={"size": "20 %"})
    assert wider.code == 0, wider.err
    stage = next(row for row in job.report()["stages"] if row["name"] == "prune")
    assert not stage["cached"] and next(row["kept"] for row in job.report()["pruned"] if row["name"] == "a") >= kept
    assert joint_run(job, budget={"size": "20 %"}).code == 0
    assert next(row for row in job.report()["stages"] if row["name"] == "prune")["cached"]


def test_widths_and_schemes_share_a_latency(job):
    outcome = joint_run(job, budget={"latency": "90 %"}, prune={"ignore": ["b"]})
    assert outcome.code in (0, 4), outcome.err   # the hour decides whether the coded network keeps it
    assert any(w["code"] == "joint_widths" for w in job.report()["warnings"])


def test_joint_widths_need_a_budget_and_a_search(job):
    for changes, words in [({"budget": {"bits": 6}}, "expected budget.size or budget.latency"), ({"prune": {"macs": 0.5}}, "expected budget.size or budget.latency alone"),
                           ({"prune": {"iterations": 2}}, "expected one round"), ({"without": ("search",)}, 'expected a stage "search"')]:
        outcome = joint_run(job, **changes)
        assert outcome.code == 2 and words in outcome.error, outcome.error
        assert not job.output.exists()
    outcome = joint_run(job, budget={"size": "1 %"})
    assert outcome.code == 4, outcome.error
