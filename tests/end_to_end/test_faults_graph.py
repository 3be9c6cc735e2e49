"""Known faults of other tools that ours must not have: identity of values, meaning of nodes, channel axes."""

import numpy as np
import onnx
import pytest
from conftest import model_of, onnxruntime_outputs, relative_error
from onnx import TensorProto, helper, numpy_helper
from quantized import F32, compress_model, conv_model, gaussian, node, one_layer

I64 = TensorProto.INT64


def names_of(model) -> list[str]:
    """Every name of a value, once for each place that defines it."""
    graph = model.graph
    made = [o for n in graph.node for o in n.output if o]
    initializers = [i.name for i in graph.initializer]
    return made + initializers + [i.name for i in graph.input if i.name not in initializers]


def tied_model(reader):
    """A matrix read by a layer and by Gather or Add, and one more layer behind."""
    weights = {"E": gaussian(32, 16, seed=1), "V": gaussian(32, 8, seed=4), "shape": np.array([3, 16])}
    nodes = [node("Gather", ["E", "ids"], ["g"], "embed"), node("Reshape", ["g", "shape"], ["h"], "reshape"),
             node("Gemm", ["h", "E"], ["logits"], "project", transB=1), node("MatMul", ["logits", "V"], ["z"], "last")]
    outputs = {"logits": ([3, 32], F32), "z": ([3, 8], F32), "g": ([1, 3, 16], F32)}
    if reader == "Gather":
        return model_of(nodes, {"ids": ([1, 3], I64)}, outputs, weights)
    nodes = [node("MatMul", ["x", "E"], ["logits"], "project"), node("MatMul", ["logits", "V"], ["z"], "last"), node("Add", ["y", "E"], ["g"], "add")]
    square = ([4, 4], F32)
    return model_of(nodes, {"x": square, "y": square}, {"logits": square, "z": square, "g": square},
                    {"E": weights["E"][:4, :4], "V": weights["V"][:4, :4]})


@pytest.mark.parametrize("reader", ["Gather", "Add"])
def test_b001_a_matrix_with_two_kinds_of_readers_serves_both(job, reader):
    if reader == "Gather":
        arrays, feeds = {"ids": np.random.default_rng(0).integers(0, 32, (16, 3))}, {"ids": np.array([[3, 31, 7]])}
    else:
        arrays = {"x": gaussian(16, 4, seed=2), "y": gaussian(16, 4, seed=3)}
        feeds = {name: array[:4] for name, array in arrays.items()}
    out = compress_model(job, tied_model(reader), arrays)
    want, got = out.run_source(**feeds), out.run(**feeds)
    assert np.array_equal(got[2], want[2])               # the other reader has E untouched
    assert relative_error(got[0], want[0]) < 0.02 and relative_error(got[1], want[1]) < 0.02
    split = [w["text"] for w in out.report["warnings"] if w["code"] == "weight_split"]
    assert len(split) == 1
    for word in ('"E" is shared', f"({reader})", "split", "project"):
        assert word in split[0]
    assert out.schemes == {"project": "w8a8_c", "last": "w8a8_c"}
    assert np.array_equal(out.run_bundle(**feeds)["g"], want[2])


def test_b001_a_layer_that_is_left_out_does_not_hold_back_the_one_it_shares_with(job):
    nodes = [node("MatMul", ["x", "W"], ["h"], "first"), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "W"], ["y"], "second")]
    square = (["N", 16], F32)
    job.write(model_of(nodes, {"x": square}, {"y": square}, {"W": gaussian(16, 16, scale=0.2)}), {"x": gaussian(96, 16, seed=1)})
    job.pipeline(calibrate={"samples": 32}, threads=1, stages=[
        {"calibrate": {"method": "minmax"}}, {"sensitivity": {"metric": "kl"}},
        {"search": {"schemes": ["w8a8_c"], "solver": "ilp"}}, {"quantize": {"method": "rtn", "ignore": ["second"]}},
        {"export": {"formats": ["bundle"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    rows = {row["name"]: row for row in job.report()["layers"]}
    assert rows["first"]["scheme"] == "w8a8_c" and rows["second"]["scheme"] == "fp32"
    assert rows["first"]["reason"] and rows["second"]["reason"] == "matches `ignore`"


def test_b002_invented_names_never_meet_names_of_the_model(job):
    w = {"W1": gaussian(10, 10, 3, 3, scale=0.1), "W2": gaussian(10, 10, 3, 3, seed=1, scale=0.1), "b": gaussian(10, seed=2)}
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [node("Relu", ["x"], ["x_scale"], "n"), node("Conv", ["x_scale", "W1", "b"], ["b0"], "", **pads),
             node("Relu", ["b0"], ["W1_scale"], "n"), node("Conv", ["W1_scale", "W2", "b"], ["y"], "", **pads)]
    shape = ([1, 10, 8, 8], F32)
    model = model_of(nodes, {"x": shape}, {"y": shape}, w)
    x = gaussian(8, 10, 8, 8, seed=5)
    out = compress_model(job, model, {"x": x})
    names = names_of(out.model)
    assert len(names) == len(set(names))
    node_names = [n.name for n in out.model.graph.node if n.name]
    assert len(node_names) == len(set(node_names))
    model.graph.node[2].name = "n2"                      # ONNX Runtime refuses the source as it is
    assert relative_error(out.run(x=x[:1])[0], out.run_source(x=x[:1])[0]) < 0.02
    assert set(out.schemes) == {"b0", "y"}               # nameless layers are addressed by what they write


def test_b002_a_nameless_layer_can_be_left_out_by_its_output(job):
    w = {"W1": gaussian(4, 4, 1, 1), "W2": gaussian(4, 4, 1, 1, seed=1)}
    model = model_of([node("Conv", ["x", "W1"], ["h"]), node("Conv", ["h", "W2"], ["y"])], {"x": ([1, 4, 2, 2], F32)},
                     {"y": ([1, 4, 2, 2], F32)}, w)
    out = compress_model(job, model, {"x": gaussian(8, 4, 2, 2)}, quantize={"ignore": ["y"]})
    assert out.schemes["h"] == "w8a8_c" and out.schemes["y"] == "fp32"
    assert np.array_equal(out.arrays["W2"], w["W2"])


def test_b003_an_output_that_is_also_read_inside_keeps_its_name(job):
    nodes = [node("MatMul", ["X", "W"], ["logits"], "project"), node("Softmax", ["logits"], ["prob"], "softmax", axis=-1)]
    model = model_of(nodes, {"X": ([2, 64], F32)}, {"logits": ([2, 32], F32), "prob": ([2, 32], F32)},
                     {"W": gaussian(64, 32, scale=0.2)})
    X = gaussian(16, 64, seed=1)
    out = compress_model(job, model, {"X": X})
    signature = [(v.name, v.type.SerializeToString()) for v in [*out.model.graph.input, *out.model.graph.output]]
    assert signature == [(v.name, v.type.SerializeToString()) for v in [*model.graph.input, *model.graph.output]]
    for got, want in zip(out.run(X=X[:2]), out.run_source(X=X[:2])):
        assert relative_error(got, want) < 0.02


def test_b003_an_input_that_is_an_output_too_passes_through_unrounded(job):
    nodes = [node("Conv", ["x", "W"], ["y"], "conv")]
    model = model_of(nodes, {"x": ([1, 3, 8, 8], F32)}, {"y": ([1, 6, 6, 6], F32), "x": ([1, 3, 8, 8], F32)}, {"W": gaussian(6, 3, 3, 3)})
    x = gaussian(8, 3, 8, 8, seed=1)
    out = compress_model(job, model, {"x": x})
    got, want = out.run_bundle(x=x[:1]), out.run(x=x[:1])
    assert np.array_equal(want[1], x[:1]) and np.array_equal(got["x"], x[:1])
    assert relative_error(got["y"], want[0]) < 1e-6 < relative_error(want[0], out.run_source(x=x[:1])[0])  # the layer rounds


def constant_conv(form, W):
    conv = node("Conv", ["x", "w"], ["y"], "layer")
    shapes = {"x": ([1, 3, 6, 6], F32)}, {"y": ([1, 4, 4, 4], F32)}
    if form == "initializer":
        return model_of([conv], *shapes, {"w": W})
    if form == "Constant":
        return model_of([node("Constant", [], ["w"], value=numpy_helper.from_array(W)), conv], *shapes, {})
    if form == "Identity":
        return model_of([node("Identity", ["W"], ["w"]), conv], *shapes, {"W": W})
    return model_of([node("Cast", ["W"], ["w"], to=TensorProto.FLOAT), conv], *shapes, {"W": W.astype(np.float16)})


@pytest.mark.parametrize("form", ["Constant", "Identity", "Cast"])
def test_b007_a_weight_is_a_weight_however_it_arrives(form, tmp_path, compress_run):
    from conftest import Job

    W = gaussian(4, 3, 3, 3).astype(np.float16).astype(np.float32)   # numbers that fp16 holds too
    x = gaussian(8, 3, 6, 6, seed=1)
    results = []
    for kind in ("initializer", form):
        folder = tmp_path / kind
        folder.mkdir()
        out = compress_model(Job(folder, compress_run), constant_conv(kind, W), {"x": x})
        assert out.schemes == {"layer": "w8a8_c"} and out.report["skipped"] == []
        results.append(out.run(x=x[:1])[0])
    assert np.array_equal(results[0], results[1])


@pytest.mark.parametrize("ir", [3, 8])
def test_b008_weights_listed_as_inputs_need_no_data(job, ir):
    W, b = gaussian(4, 3, 3, 3), gaussian(4, seed=1)
    model = conv_model(W, [1, 3, 6, 6], [1, 4, 4, 4], bias=b, opset=9, ir=ir)
    clean = onnx.ModelProto.FromString(model.SerializeToString())
    model.graph.input.extend([helper.make_tensor_value_info("W", F32, W.shape), helper.make_tensor_value_info("b", F32, b.shape)])
    x = gaussian(8, 3, 6, 6, seed=2)
    out = compress_model(job, model, {"x": x})
    assert out.schemes == {"layer": "w8a8_c"}
    assert relative_error(out.run(x=x[:1])[0], onnxruntime_outputs(clean, {"x": x[:1]})[0]) < 0.02
    assert [i.name for i in out.model.graph.input] == ["x"]
    if ir >= 4:   # before IR 4 the listing was a duty, since then it is an offer to replace the value
        assert "W" in out.warning_text() and "b" in out.warning_text()


def squeezed_shape(tmp_path, op, opset, axes, as_input):
    import compress

    weights = {"axes": np.array(axes, np.int64)} if as_input else {}
    attributes = {} if as_input or axes is None else {"axes": axes}
    model = model_of([node(op, ["x", *weights], ["y"], **attributes)], {"x": ([1, 1, 4], F32)}, {"y": (None, F32)}, weights, opset=opset)
    onnx.save(model, tmp_path / "squeeze.onnx")
    return compress.load(tmp_path / "squeeze.onnx").run({"x": np.ones((1, 1, 4), np.float32)})["y"].shape


def test_b010_squeeze_axes_are_read_as_the_opset_means_them(tmp_path):
    assert squeezed_shape(tmp_path, "Squeeze", 11, [0], False) == (1, 4)
    assert squeezed_shape(tmp_path, "Squeeze", 13, [0], True) == (1, 4)
    assert squeezed_shape(tmp_path, "Squeeze", 13, None, False) == (4,)
    assert squeezed_shape(tmp_path, "Unsqueeze", 13, [-1], True) == (1, 1, 4, 1)


def test_b010_raised_opset_keeps_axes_a_vector_of_one(job):
    nodes = [node("Squeeze", ["x"], ["s"], axes=[0]), node("MatMul", ["s", "W"], ["m"], "layer"),
             node("Unsqueeze", ["m"], ["y"], axes=[-1])]
    model = model_of(nodes, {"x": ([1, 1, 4], F32)}, {"y": ([1, 5, 1], F32)}, {"W": gaussian(4, 5)}, opset=11)
    x = gaussian(8, 1, 4, seed=1)
    out = compress_model(job, model, {"x": x}, scheme="w4a8_c")
    assert out.opset >= 21
    for op in ("Squeeze", "Unsqueeze"):
        (made,) = out.nodes(op)
        axes = out.arrays[made.input[1]]
        assert axes.dtype == np.int64 and axes.shape == (1,)
    assert out.run(x=x[:1])[0].shape == (1, 5, 1)
    assert relative_error(out.run(x=x[:1])[0], out.run_source(x=x[:1])[0]) < 0.15


COUNT = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
# Sums over a 2x2 window by hand: SAME_LOWER pads in front, SAME_UPPER behind.
PADDED = [({"auto_pad": "SAME_LOWER"}, [1, 3, 5, 7]), ({"auto_pad": "SAME_UPPER"}, [14, 18, 22, 12]), ({"pads": [1, 1, 0, 0]}, [1, 3, 5, 7])]


@pytest.mark.parametrize("attributes, first_row", PADDED, ids=["lower", "upper", "explicit"])
def test_b011_padding_lies_on_the_side_it_is_asked_for(job, attributes, first_row):
    model = conv_model(np.ones((1, 1, 2, 2), np.float32), [1, 1, 4, 4], [1, 1, 4, 4], **attributes)
    out = compress_model(job, model, {"x": np.concatenate([COUNT, COUNT])})
    assert out.schemes == {"layer": "w8a8_c"}
    # One step of the input is 16 / 255, four of them are summed, half a step is lost on each.
    for got in (out.run(x=COUNT)[0], out.run_bundle(x=COUNT)["y"]):
        assert np.abs(got[0, 0, 0] - first_row).max() <= 4 * 0.5 * 16 / 255 + 64 / 255


def test_b011_unequal_paddings_are_quantized_with_the_same_paddings(job):
    model = conv_model(gaussian(2, 1, 3, 3), [1, 1, 4, 4], [1, 2, 6, 4], pads=[2, 1, 2, 1])
    x = gaussian(8, 1, 4, 4, seed=1)
    out = compress_model(job, model, {"x": x})
    assert out.schemes == {"layer": "w8a8_c"}
    want = out.run_source(x=x[:1])[0]
    assert relative_error(out.run(x=x[:1])[0], want) < 0.02 and relative_error(out.run_bundle(x=x[:1])["y"], want) < 0.02


def test_b014_custom_operator_is_refused_by_node_domain_and_version(job):
    foo = helper.make_node("Foo", ["h"], ["f"], "mystery", domain="my.ops")
    nodes = [node("MatMul", ["x", "W"], ["h"], "m1"), foo, node("MatMul", ["f", "W2"], ["y"], "m2")]
    model = model_of(nodes, {"x": ([2, 8], F32)}, {"y": ([2, 4], F32)}, {"W": gaussian(8, 8), "W2": gaussian(8, 4)},
                     extra_opsets=[helper.make_opsetid("my.ops", 3)])
    job.write(model, {"x": gaussian(8, 2, 8)})
    job.pipeline(calibrate={}, threads=1)
    outcome = job.run()
    assert outcome.code == 3
    for word in ("mystery", "my.ops", "Foo", "3"):
        assert word in outcome.error
    assert not (job.output / "model_qdq.onnx").exists()


def test_b014_custom_operator_is_carried_where_nothing_has_to_run_it(job):
    foo = helper.make_node("Foo", ["h"], ["f"], "mystery", domain="my.ops", k=7)
    nodes = [node("MatMul", ["x", "W"], ["h"], "m1"), foo, node("MatMul", ["f", "W2"], ["y"], "m2")]
    model = model_of(nodes, {"x": ([2, 8], F32)}, {"y": ([2, 4], F32)}, {"W": gaussian(8, 8), "W2": gaussian(8, 4)},
                     extra_opsets=[helper.make_opsetid("my.ops", 3)])
    onnx.save(model, job.folder / "net.onnx")
    job.pipeline(threads=1, stages=[{"quantize": {"method": "rtn", "scheme": "fp16"}}, {"export": {"formats": ["onnx_qdq"]}}])
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    written = onnx.load(job.output / "model_qdq.onnx")
    assert [n.SerializeToString() for n in written.graph.node if n.op_type == "Foo"] == [foo.SerializeToString()]
    assert {o.domain: o.version for o in written.opset_import}["my.ops"] == 3
    assert not any(n.op_type in ("QuantizeLinear", "DequantizeLinear") for n in written.graph.node)  # its tensors stay float
    report = job.report()
    assert [row["name"] for row in report["skipped"]] == ["mystery"] and report["checks"] == []  # nothing "passed"
    assert report["metric"] is None and report["latency"]["final"]["median"] is None


def test_b014_validation_that_cannot_run_a_custom_operator_is_refused_and_not_passed(job):
    foo = helper.make_node("Foo", ["h"], ["y"], "mystery", domain="my.ops")
    model = model_of([node("MatMul", ["x", "W"], ["h"], "m1"), foo], {"x": (["N", 8], F32)}, {"y": (["N", 8], F32)}, {"W": gaussian(8, 8)},
                     extra_opsets=[helper.make_opsetid("my.ops", 3)])
    job.write(model, {"x": gaussian(8, 8)})
    job.pipeline(evaluate={"metric": "kl"}, threads=1, stages=[{"quantize": {"method": "rtn", "scheme": "fp16"}}, {"export": {"formats": ["onnx_qdq"]}},
                                                               {"validate": {"against": ["onnxruntime"]}}])
    outcome = job.run()
    assert outcome.code == 3
    for word in ("mystery", "my.ops", "Foo", "validate"):
        assert word in outcome.error
    assert not job.output.exists()


@pytest.mark.parametrize("scheme, least_opset", [("w8a8_c", 13), ("w4a8_c", 21)])
def test_b015_old_opset_is_raised_as_a_whole(job, scheme, least_opset):
    w = {"W": gaussian(4, 3, 3, 3), "M": gaussian(64, 32, seed=1), "shape": np.array([1, 64])}
    nodes = [node("Conv", ["x", "W"], ["c"], "conv"), node("Reshape", ["c", "shape"], ["r"]), node("MatMul", ["r", "M"], ["y"], "matmul")]
    model = model_of(nodes, {"x": ([1, 3, 6, 6], F32)}, {"y": ([1, 32], F32)}, w, opset=11)
    x = gaussian(8, 3, 6, 6, seed=2)
    out = compress_model(job, model, {"x": x}, scheme=scheme)
    assert out.opset >= least_opset
    axes = {len(out.arrays[d.input[1]]): out.axis(d) for d in out.weight_dequantizers()}
    assert axes == {4: 0, 32: 1}
    assert relative_error(out.run(x=x[:1])[0], out.run_source(x=x[:1])[0]) < (0.02 if scheme == "w8a8_c" else 0.15)


def test_b015_blocks_in_an_old_opset_raise_it_and_name_axis_and_size(job):
    nodes = [node("Squeeze", ["x"], ["s"], axes=[1]), node("MatMul", ["s", "M"], ["y"], "matmul")]
    model = model_of(nodes, {"x": (["N", 1, 64], F32)}, {"y": (["N", 32], F32)}, {"M": gaussian(64, 32, seed=1)}, opset=11)
    x = gaussian(16, 1, 64, seed=2)
    out = compress_model(job, model, {"x": x}, scheme="w4a16_g32")
    assert out.opset >= 21
    (weight,) = out.weight_dequantizers()
    assert {a.name: a.i for a in weight.attribute} == {"axis": 0, "block_size": 32}
    assert out.arrays[weight.input[1]].shape == (2, 32)   # 64 rows in two blocks
    assert relative_error(out.run(x=x[:4])[0], out.run_source(x=x[:4])[0]) < 0.15


def test_b017_concat_of_one_input_loads_and_copies(job):
    nodes = [node("Concat", ["x"], ["c"], axis=1), node("MatMul", ["c", "W"], ["y"], "layer")]
    model = model_of(nodes, {"x": ([2, 8], F32)}, {"c": ([2, 8], F32), "y": ([2, 4], F32)}, {"W": gaussian(8, 4)})
    x = gaussian(16, 8, seed=1)
    out = compress_model(job, model, {"x": x})
    got = out.run(x=x[:2])
    low, high = out.range_of("x")
    assert np.abs(got[0] - x[:2]).max() <= (high - low) / 255 and relative_error(got[1], out.run_source(x=x[:2])[1]) < 0.02


def test_b017_concat_of_unequal_ranges_keeps_the_small_one(job):
    w = {"W": gaussian(2, 2, 1, 1, scale=0.3), "scales": np.array([1, 1, 2, 2], np.float32)}
    nodes = [node("Conv", ["x", "W"], ["a"], "layer"), node("Resize", ["z", "", "scales"], ["b"], "resize", mode="nearest"),
             node("Concat", ["a", "b"], ["y"], "join", axis=1)]
    model = model_of(nodes, {"x": ([1, 2, 4, 4], F32), "z": ([1, 2, 2, 2], F32)}, {"y": ([1, 4, 4, 4], F32)}, w)
    x, z = gaussian(8, 2, 4, 4), gaussian(8, 2, 2, 2, seed=1, scale=50)
    out = compress_model(job, model, {"x": x, "z": z})
    want, got = out.run_source(x=x[:1], z=z[:1])[0], out.run(x=x[:1], z=z[:1])[0]
    assert relative_error(got[:, :2], want[:, :2]) < 0.02 and relative_error(got[:, 2:], want[:, 2:]) < 0.02


def test_b017_residual_add_of_unequal_ranges_stays_within_its_step(job):
    w = {"W1": gaussian(2, 2, 1, 1, scale=0.3), "W2": gaussian(2, 2, 1, 1, seed=1, scale=30)}
    nodes = [node("Conv", ["x", "W1"], ["a"], "small"), node("Conv", ["x", "W2"], ["b"], "large"), node("Add", ["a", "b"], ["y"], "join")]
    model = model_of(nodes, {"x": ([1, 2, 4, 4], F32)}, {"y": ([1, 2, 4, 4], F32)}, w)
    x = gaussian(8, 2, 4, 4)
    out = compress_model(job, model, {"x": x})
    low, high = out.range_of("y")
    # The inputs are rounded too: half a step each of x through both matrices, of b and of y.
    steps = (high - low) / 255 * 2
    want = out.run_source(x=x[:1])[0]
    assert np.abs(out.run(x=x[:1])[0] - want).max() <= 2 * steps
    assert np.abs(out.run_bundle(x=x[:1])["y"] - out.run(x=x[:1])[0]).max() <= (high - low) / 255 * 1.001


def graded_gemm(transposed):
    W = gaussian(3, 8, seed=1) * np.array([[1], [10], [100]], np.float32)
    return one_layer("Gemm", {"W": W if transposed else np.ascontiguousarray(W.T)}, [2, 8], [2, 3], transB=int(transposed))


def test_b018_gemm_has_a_scale_for_each_output_in_both_layouts(tmp_path, compress_run):
    from conftest import Job

    x = gaussian(32, 8)
    results = []
    for transposed in (True, False):
        folder = tmp_path / str(transposed)
        folder.mkdir()
        out = compress_model(Job(folder, compress_run), graded_gemm(transposed), {"x": x})
        (weight,) = out.weight_dequantizers()
        assert out.arrays[weight.input[1]].shape == (3,) and out.axis(weight) == (0 if transposed else 1)
        # Judged by the weight: 8 products of inputs rounded by half a step each lose more than 1% by themselves.
        got, want = out.run(x=x[:2])[0], out.run_source(x=x[:2])[0]
        for c in range(3):
            assert relative_error(got[:, c], want[:, c]) < 0.02
        codes, scales = out.arrays[weight.input[0]].astype(np.float64), out.arrays[weight.input[1]]
        back = (codes if transposed else codes.T) * scales[:, None]
        for row, W in zip(back, gaussian(3, 8, seed=1) * np.array([[1], [10], [100]])):
            assert relative_error(row, W) < 0.01
        results.append(got)
    assert np.array_equal(results[0], results[1])


def test_b018_a_weight_already_quantized_along_its_last_axis_is_read_so(tmp_path):
    import compress

    codes = np.random.default_rng(0).integers(-127, 128, (8, 3), dtype=np.int8)
    w = {"codes": codes, "s": np.array([0.01, 0.1, 1], np.float32), "z": np.zeros(3, np.int8)}
    nodes = [node("DequantizeLinear", ["codes", "s", "z"], ["W"], axis=-1), node("MatMul", ["x", "W"], ["y"], "layer")]
    onnx.save(model_of(nodes, {"x": ([2, 8], F32)}, {"y": ([2, 3], F32)}, w), tmp_path / "q.onnx")
    x = gaussian(2, 8)
    want = x.astype(np.float64) @ (codes * w["s"].astype(np.float64))
    got = compress.load(tmp_path / "q.onnx").run({"x": x})["y"]
    assert np.abs(got / want - 1).max() < 1e-4


def test_b019_transposed_convolution_has_its_scales_on_axis_one(job):
    weights = {"W": gaussian(3, 5, 3, 3), "b": gaussian(5, seed=1)}
    x = gaussian(8, 3, 4, 4, seed=2)
    out = compress_model(job, one_layer("ConvTranspose", weights, [1, 3, 4, 4], [1, 5, 6, 6]), {"x": x})
    (weight,) = out.weight_dequantizers()
    assert out.arrays[weight.input[1]].shape == (5,) and out.axis(weight) == 1
    (bias,) = [n for n in out.nodes("DequantizeLinear") if n.input[0] in out.arrays and out.arrays[n.input[0]].dtype == np.int32]
    assert out.arrays[bias.input[0]].shape == out.arrays[bias.input[1]].shape == (5,)
    want = out.run_source(x=x[:1])[0]
    assert relative_error(out.run(x=x[:1])[0], want) < 0.02 and relative_error(out.run_bundle(x=x[:1])["y"], want) < 0.02


def test_b019_grouped_transposed_convolution_falls_back_and_says_so(job):
    weights = {"W": gaussian(4, 2, 3, 3), "b": gaussian(4, seed=1)}
    x = gaussian(8, 4, 4, 4, seed=2)
    out = compress_model(job, one_layer("ConvTranspose", weights, [1, 4, 4, 4], [1, 4, 6, 6], group=2), {"x": x})
    (weight,) = out.weight_dequantizers()
    assert out.arrays[weight.input[1]].shape == ()
    assert "layer: a grouped ConvTranspose takes one scale for the whole weight" in out.warning_text()
    want = out.run_source(x=x[:1])[0]
    assert relative_error(out.run(x=x[:1])[0], want) < 0.02 and relative_error(out.run_bundle(x=x[:1])["y"], want) < 0.02
