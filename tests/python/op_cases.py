"""Small one-purpose models, several for every operator of graph/ops.def, to run through us and through ONNX Runtime.

Each case is one node (rarely a few) of a given opset, with its inputs. Inputs that decide shapes are initializers, as
exporters write them; the others are graph inputs. Data is seeded by the case's name, so cases do not depend on each other.
"""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class OpCase:
    """nodes read "x0", "x1", ... (the operator's inputs by position) and write "y0", "y1", ...

    inputs: graph inputs by name. constants: initializers by name.
    """

    name: str
    op: str
    opset: int
    nodes: list[onnx.NodeProto]
    inputs: dict[str, np.ndarray]
    constants: dict[str, onnx.TensorProto]
    outputs: list[str]

    def model(self) -> onnx.ModelProto:
        """The case as a model with typed inputs and outputs; shapes as far as inference gets."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in self.inputs.items()
            ],
            [onnx.ValueInfoProto(name=name) for name in self.outputs],
            list(self.constants.values()),
        )
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.opset < 19 else 10)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


CASES: list[OpCase] = []


def case(label, op, inputs, *, opset=17, const=(), outputs=1, **attributes):
    """Adds a single-node case. inputs: arrays or TensorProtos, None for an omitted one; const: positions of initializers."""
    names, given, constants = [], {}, {}
    for position, value in enumerate(inputs):
        name = f"x{position}"
        names.append("" if value is None else name)
        if isinstance(value, onnx.TensorProto):
            value.name = name
            constants[name] = value
        elif value is not None and position in const:
            constants[name] = numpy_helper.from_array(np.asarray(value), name)
        elif value is not None:
            given[name] = np.asarray(value)
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name=op.lower(), **attributes)
    CASES.append(OpCase(f"{op}_{label}", op, opset, [node], given, constants, results))


def rand(label, *shape, low=-2.0, high=2.0):
    """float32 uniform in low..high, seeded by label."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    return rng.uniform(low, high, shape).astype(np.float32)


def codes(label, *shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def ints(*values):
    return np.array(values, dtype=np.int64)


def f32(*values):
    return np.array(values, dtype=np.float32)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype=dtype)


def four_bit(kind, shape, values):
    return helper.make_tensor("unnamed", kind, shape, values)


# --- one input, element by element ------------------------------------------------------------------------------------
SPECIAL = f32(0.0, -0.0, 1.0, -1.0, 0.5, -3.0, 3.0, 6.0, 20.0, -20.0, 88.0, -104.0)
for unary in ["Abs", "Elu", "Erf", "Exp", "HardSigmoid", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Tanh"]:
    case("special_values", unary, [SPECIAL], opset=13)
    case("4d", unary, [rand(unary, 2, 3, 4, 5)], opset=13)
case("opset9", "Relu", [rand("r9", 3)], opset=9)
case("scalar", "Relu", [scalar(-1.5)])
case("integers", "Abs", [ints(-3, 0, 4)], opset=13)
case("integers", "Neg", [ints(-3, 0, 4)], opset=13)
case("alpha", "Elu", [rand("elu", 17)], alpha=0.5)
case("alpha", "LeakyRelu", [rand("leaky", 17)], alpha=0.3, opset=9)
case("alpha_beta", "HardSigmoid", [rand("hs", 17)], alpha=1.0 / 6.0, beta=0.5, opset=11)
case("special_values", "HardSwish", [SPECIAL], opset=14)
case("4d", "HardSwish", [rand("hsw", 2, 3, 4, 5, low=-5, high=5)], opset=17)
case("positive", "Sqrt", [rand("sqrt", 3, 4, low=0.0, high=9.0)], opset=13)
case("zero_and_one", "Sqrt", [f32(0.0, 1.0, 4.0)], opset=9)
case("erf", "Gelu", [rand("gelu", 2, 33, low=-6, high=6)], opset=20)
case("tanh", "Gelu", [rand("gelut", 2, 33, low=-6, high=6)], opset=20, approximate="tanh")

case("attributes_opset9", "Clip", [rand("c9", 2, 8)], opset=9, min=-0.5, max=1.0)
case("only_min_attribute_opset10", "Clip", [rand("c10", 2, 8)], opset=10, min=0.0)
case("inputs_opset11", "Clip", [rand("c11", 2, 8), scalar(-0.5), scalar(1.0)], opset=11, const=(1, 2))
case("only_max", "Clip", [rand("c12", 2, 8), None, scalar(0.25)], opset=13, const=(2,))
case("none", "Clip", [rand("c13", 2, 8)], opset=13)
case("relu6", "Clip", [rand("c6", 1, 3, 4, 4, low=-9, high=9), scalar(0.0), scalar(6.0)], opset=13, const=(1, 2))

# --- two and more inputs, broadcasting --------------------------------------------------------------------------------
PAIRS = {
    "equal": ((2, 3, 4), (2, 3, 4)),
    "row": ((2, 3, 4), (4,)),
    "column": ((2, 3, 4), (3, 1)),
    "scalar": ((2, 3, 4), ()),
    "left_scalar": ((1,), (2, 3)),
    "both_ways": ((3, 1, 5), (1, 4, 1)),
    "channels": ((2, 3, 4, 4), (1, 3, 1, 1)),
}
for binary in ["Add", "Sub", "Mul", "Div"]:
    for label, (a, b) in PAIRS.items():
        case(label, binary, [rand(binary + label, *a), rand(binary + label + "b", *b, low=0.5, high=3.0)], opset=13)
    case("int64", binary, [ints(7, -7, 9), ints(2, 2, -4)], opset=14)
    case("int32", binary, [np.int32([7, -7, 9]), np.int32([2])], opset=14)
    case("opset9", binary, [rand(binary, 4), rand(binary + "9", 4, low=1, high=2)], opset=9)
for label, (a, b) in PAIRS.items():
    case(label, "Pow", [rand("p" + label, *a, low=0.1, high=3.0), rand("q" + label, *b, low=-2, high=2)], opset=13)
case("square", "Pow", [rand("sq", 2, 5), scalar(2.0)], const=(1,), opset=13)
case("cube_of_negatives", "Pow", [rand("cu", 2, 5), scalar(3.0)], const=(1,), opset=9)
case("int_exponent", "Pow", [rand("ie", 2, 5), ints(2)], opset=13)
case("int32_exponent", "Pow", [rand("ie3", 2, 2), np.int32([2, 3])], opset=15)
for extremum in ["Min", "Max"]:
    case("one", extremum, [rand(extremum, 2, 3)], opset=13)
    case("two_broadcast", extremum, [rand(extremum + "a", 2, 3), rand(extremum + "b", 3)], opset=13)
    case("three", extremum, [rand(extremum + "c", 2, 1), rand(extremum + "d", 3), scalar(0.1)], opset=13)
    case("int64", extremum, [ints(1, 5, -2), ints(0)], opset=13)
    case("opset9", extremum, [rand(extremum + "e", 4), rand(extremum + "f", 4)], opset=9)
case("float", "Equal", [f32(1, 2, 3), f32(1, 0, 3)], opset=13)
case("int64_broadcast", "Equal", [np.arange(6, dtype=np.int64).reshape(2, 3), ints(1)], opset=13)
case("bool", "Equal", [np.array([True, False]), np.array([[True], [False]])], opset=13)
case("int32_opset9", "Equal", [np.int32([1, 2]), np.int32([1, 3])], opset=9)
case("broadcast", "Where", [np.array([[True], [False]]), rand("wa", 3), rand("wb", 2, 3)], opset=9)
case("scalars", "Where", [np.array([True, False, True]), scalar(1.0), scalar(2.0)], opset=16)
case("int64", "Where", [np.array([True, False]), ints(1, 2), ints(3, 4)], opset=16)
case("per_channel", "PRelu", [rand("pr", 2, 3, 4, 4), rand("prs", 3, 1, 1)], const=(1,), opset=9)
case("one_slope", "PRelu", [rand("pr1", 2, 3, 4), f32(0.2)], const=(1,), opset=16)
case("slope_per_element", "PRelu", [rand("pr2", 2, 3), rand("pr2s", 2, 3)], opset=16)

# --- layers -----------------------------------------------------------------------------------------------------------
def conv(label, x, w, bias=False, op="Conv", out=None, opset=11, **attributes):
    inputs = [rand(label, *x), rand(label + "w", *w)]
    if bias:
        inputs.append(rand(label + "b", w[0] if out is None else out))
    case(label, op, inputs, const=(1, 2), opset=opset, **attributes)


conv("3x3", (2, 3, 8, 8), (4, 3, 3, 3), bias=True, pads=[1, 1, 1, 1])
conv("1x1_strided", (1, 4, 7, 7), (6, 4, 1, 1), strides=[2, 2])
conv("odd_pads", (1, 2, 5, 6), (3, 2, 3, 3), pads=[2, 1, 2, 1])
conv("begin_pads_only", (1, 2, 5, 6), (3, 2, 2, 2), pads=[1, 1, 0, 0])
conv("same_upper_even_kernel", (1, 2, 5, 6), (3, 2, 2, 2), auto_pad="SAME_UPPER")
conv("same_lower_even_kernel", (1, 2, 5, 6), (3, 2, 2, 2), auto_pad="SAME_LOWER")
conv("same_upper_strided", (1, 2, 7, 8), (3, 2, 3, 3), auto_pad="SAME_UPPER", strides=[2, 3])
conv("same_lower_strided_dilated", (1, 2, 9, 8), (3, 2, 3, 3), auto_pad="SAME_LOWER", strides=[2, 2])
conv("valid", (1, 2, 7, 8), (3, 2, 3, 3), auto_pad="VALID", strides=[2, 2])
conv("dilated", (1, 2, 9, 9), (3, 2, 3, 3), dilations=[2, 3])
conv("groups", (1, 6, 5, 5), (4, 3, 3, 3), bias=True, group=2)
conv("depthwise", (2, 5, 6, 6), (5, 1, 3, 3), bias=True, group=5, pads=[1, 1, 1, 1])
conv("depthwise_multiplier", (1, 3, 6, 6), (6, 1, 3, 3), group=3)
conv("1d", (2, 3, 11), (4, 3, 3), bias=True, strides=[2], dilations=[2], pads=[1, 2])
conv("3d", (1, 2, 5, 6, 7), (3, 2, 2, 3, 3), bias=True, strides=[1, 2, 1], pads=[0, 1, 1, 1, 0, 1])
conv("rectangular_kernel_opset22", (1, 2, 6, 9), (3, 2, 1, 5), opset=22, kernel_shape=[1, 5])
conv("kernel_as_large_as_input_opset9", (1, 2, 4, 4), (3, 2, 4, 4), opset=9)

for rank, x, w in [(1, (2, 3, 5), (3, 4, 3)), (2, (1, 3, 4, 5), (3, 5, 3, 3)), (3, (1, 2, 3, 3, 3), (2, 3, 2, 2, 2))]:
    conv(f"{rank}d", x, w, bias=True, op="ConvTranspose", out=w[1], strides=[2] * rank)
conv("pads", (1, 3, 4, 5), (3, 2, 3, 3), op="ConvTranspose", strides=[2, 2], pads=[1, 0, 1, 2])
conv("output_padding", (1, 3, 4, 5), (3, 2, 3, 3), op="ConvTranspose", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
conv("output_shape", (1, 3, 4, 4), (3, 2, 3, 3), op="ConvTranspose", strides=[3, 2], output_shape=[10, 8])
conv("same_upper", (1, 3, 4, 4), (3, 2, 3, 3), op="ConvTranspose", strides=[2, 2], auto_pad="SAME_UPPER")
conv("same_lower", (1, 3, 4, 4), (3, 2, 3, 3), op="ConvTranspose", strides=[2, 2], auto_pad="SAME_LOWER")
conv("groups", (1, 4, 4, 4), (4, 2, 3, 3), bias=True, op="ConvTranspose", out=4, group=2)
conv("dilated", (1, 2, 4, 4), (2, 3, 3, 3), op="ConvTranspose", dilations=[2, 1], strides=[1, 2])

case("plain", "Gemm", [rand("ga", 3, 5), rand("gb", 5, 4)], const=(1,), opset=11)
case("trans_b_bias", "Gemm", [rand("ga2", 3, 5), rand("gb2", 4, 5), rand("gc2", 4)], const=(1, 2), transB=1, opset=9)
case("trans_a", "Gemm", [rand("ga3", 5, 3), rand("gb3", 5, 4), rand("gc3", 3, 1)], const=(1, 2), transA=1, opset=13)
case("trans_both", "Gemm", [rand("ga4", 5, 3), rand("gb4", 4, 5), rand("gc4", 3, 4)], transA=1, transB=1, opset=13)
case("alpha_beta", "Gemm", [f32(1, 2, 3, 4).reshape(1, 4), (np.arange(12, dtype=np.float32) / 10).reshape(4, 3),
                            f32(10, 20, 30)], const=(1, 2), alpha=2.0, beta=0.5, opset=13)
case("scalar_c", "Gemm", [rand("ga5", 3, 5), rand("gb5", 5, 4), scalar(0.5)], const=(1, 2), alpha=0.5, opset=13)
case("one_element_c", "Gemm", [rand("ga6", 3, 5), rand("gb6", 5, 4), f32(0.5)], const=(1, 2), beta=3.0, opset=13)
case("weight_first", "Gemm", [rand("ga7", 6, 5), rand("gb7", 5, 1)], const=(0,), opset=13)

for label, (a, b) in {
    "2d": ((3, 4), (4, 5)),
    "batched": ((2, 3, 4), (2, 4, 5)),
    "shared_b": ((2, 3, 4), (4, 5)),
    "shared_a": ((3, 4), (2, 4, 5)),
    "broadcast_batches": ((2, 1, 3, 4), (5, 4, 2)),
    "broadcast_ones": ((1, 3, 4), (2, 2, 4, 2)),
    "vector_matrix": ((4,), (4, 5)),
    "matrix_vector": ((3, 4), (4,)),
    "dot": ((4,), (4,)),
    "vector_batch": ((4,), (2, 4, 5)),
    "batch_vector": ((2, 3, 4), (4,)),
}.items():
    case(label, "MatMul", [rand(label + "ma", *a), rand(label + "mb", *b)], opset=13)
case("constant_b_opset9", "MatMul", [rand("mmc", 2, 3, 4), rand("mmd", 4, 5)], const=(1,), opset=9)


def statistics(label, channels):
    return [rand(label + "s", channels), rand(label + "b", channels), rand(label + "m", channels),
            rand(label + "v", channels, low=0.1, high=2.0)]


case("2d", "BatchNormalization", [rand("bn2", 2, 3), *statistics("bn2", 3)], const=(1, 2, 3, 4), opset=15)
case("4d", "BatchNormalization", [rand("bn4", 2, 3, 4, 4), *statistics("bn4", 3)], const=(1, 2, 3, 4), opset=15)
case("epsilon_opset9", "BatchNormalization", [rand("bn9", 2, 3, 4), *statistics("bn9", 3)], const=(1, 2, 3, 4), opset=9,
     epsilon=0.1)
case("5d_opset14", "BatchNormalization", [rand("bn5", 1, 2, 2, 3, 2), *statistics("bn5", 2)], const=(1, 2, 3, 4), opset=14)
case("last_axis", "LayerNormalization", [rand("ln", 2, 3, 8), rand("lns", 8), rand("lnb", 8)], const=(1, 2))
case("axis_1", "LayerNormalization", [rand("ln1", 2, 3, 8), rand("ln1s", 3, 8), rand("ln1b", 3, 8)], const=(1, 2), axis=1)
case("no_bias_negative_axis", "LayerNormalization", [rand("ln2", 2, 3, 8), rand("ln2s", 3, 8)], const=(1,), axis=-2,
     epsilon=0.01)
case("last_axis", "RMSNormalization", [rand("rms", 2, 3, 19), rand("rmss", 19)], const=(1,), opset=23)
case("axis_1", "RMSNormalization", [rand("rms1", 2, 3, 8), rand("rms1s", 3, 8)], const=(1,), opset=23, axis=1, epsilon=0.01)


def angles(label, *shape):
    """cos and sin of random angles."""
    turned = rand(label, *shape, low=-3.0, high=3.0)
    return np.cos(turned), np.sin(turned)


case("4d", "RotaryEmbedding", [rand("ro", 2, 3, 5, 8), *angles("roa", 2, 5, 4)], opset=23)
case("3d_positions", "RotaryEmbedding",
     [rand("ro3", 2, 5, 24), *angles("ro3a", 9, 4), np.array([[8, 0, 3, 3, 1], [4, 5, 6, 7, 2]])], const=(1, 2), opset=23,
     num_heads=3)
case("interleaved", "RotaryEmbedding", [rand("roi", 1, 3, 5, 8), *angles("roia", 9, 4), np.array([[0, 1, 2, 3, 4]])], const=(1, 2),
     opset=23, interleaved=1)
case("partial", "RotaryEmbedding", [rand("rop", 2, 3, 5, 8), *angles("ropa", 2, 5, 2)], opset=23, num_heads=3,
     rotary_embedding_dim=4)


def heads(label, batch, q_heads, kv_heads, queries, keys, size, value_size=None):
    """q, k, v of four dimensions."""
    return [rand(label + "q", batch, q_heads, queries, size), rand(label + "k", batch, kv_heads, keys, size),
            rand(label + "v", batch, kv_heads, keys, value_size or size)]


def flat(tensors):
    """[batch, heads, tokens, size] -> [batch, tokens, heads * size]."""
    return [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], -1) for x in tensors]


case("4d", "Attention", heads("at", 2, 3, 3, 5, 7, 8, 12), opset=23)
case("3d_causal_grouped", "Attention", flat(heads("atg", 2, 8, 2, 70, 70, 8)), opset=23, q_num_heads=8, kv_num_heads=2,
     is_causal=1)
case("scale", "Attention", heads("ats", 1, 2, 2, 4, 6, 8), opset=23, scale=0.5)
case("bool_mask", "Attention", [*heads("atm", 2, 4, 2, 5, 7, 8), rand("atmm", 2, 1, 5, 7) > -1.0], opset=23)
case("float_mask_2d", "Attention", [*heads("atf", 2, 4, 4, 5, 7, 8), rand("atfm", 5, 7)], opset=23)
case("past", "Attention", [*heads("atp", 2, 4, 2, 3, 3, 8), None, rand("atpk", 2, 2, 6, 8), rand("atpv", 2, 2, 6, 8)], opset=23,
     outputs=3)
case("3d_past_causal_opset24", "Attention", [*flat(heads("atc", 2, 4, 2, 3, 3, 8)), None, rand("atck", 2, 2, 6, 8),
                                             rand("atcv", 2, 2, 6, 8)],
     opset=24, outputs=3, q_num_heads=4, kv_num_heads=2, is_causal=1)
for label, axis, opset in [("default", None, 13), ("axis_1", 1, 13), ("negative_axis", -2, 13), ("opset11_default", None, 11),
                           ("opset11_axis_2", 2, 11), ("opset9_axis_1", 1, 9)]:
    case(label, "Softmax", [rand("sm" + label, 2, 3, 4, low=-9, high=9)], opset=opset, **({} if axis is None else {"axis": axis}))
case("large_logits", "Softmax", [f32(1000, 1001, -1000)], opset=13)

# --- pools and reductions ---------------------------------------------------------------------------------------------
for pool in ["MaxPool", "AveragePool"]:
    case("2x2", pool, [rand(pool, 2, 3, 6, 6)], opset=11, kernel_shape=[2, 2], strides=[2, 2])
    case("opset9", pool, [rand(pool + "9", 1, 2, 5, 5)], opset=9, kernel_shape=[3, 3], strides=[2, 2])
    case("pads", pool, [rand(pool + "p", 1, 2, 5, 6)], opset=12, kernel_shape=[3, 3], pads=[1, 0, 2, 1])
    case("ceil_mode", pool, [rand(pool + "c", 1, 2, 7, 6)], opset=19, kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1)
    case("ceil_mode_pads", pool, [rand(pool + "cp", 1, 1, 6, 6)], opset=19, kernel_shape=[3, 3], strides=[3, 3],
         pads=[1, 1, 1, 1], ceil_mode=1)
    case("ceil_mode_drops_last_window", pool, [rand(pool + "cd", 1, 1, 2)], opset=19, kernel_shape=[2], strides=[3],
         pads=[1, 1], ceil_mode=1)
    case("same_upper", pool, [rand(pool + "u", 1, 2, 5, 6)], opset=12, kernel_shape=[2, 2], auto_pad="SAME_UPPER")
    case("same_lower", pool, [rand(pool + "l", 1, 2, 5, 6)], opset=12, kernel_shape=[2, 2], auto_pad="SAME_LOWER")
    case("same_upper_strided", pool, [rand(pool + "us", 1, 2, 7, 8)], opset=12, kernel_shape=[3, 3], strides=[2, 2],
         auto_pad="SAME_UPPER")
    case("valid", pool, [rand(pool + "v", 1, 2, 7, 8)], opset=12, kernel_shape=[3, 3], strides=[2, 2], auto_pad="VALID")
    case("1d", pool, [rand(pool + "1", 2, 3, 9)], opset=11, kernel_shape=[3], strides=[2], pads=[1, 1])
    case("3d", pool, [rand(pool + "3", 1, 2, 4, 5, 6)], opset=11, kernel_shape=[2, 2, 3], strides=[2, 1, 2])
    case("dilated", pool, [rand(pool + "d", 1, 2, 8, 8)], opset=19, kernel_shape=[2, 3], dilations=[2, 3], pads=[1, 2, 1, 2])
case("negative_with_pads", "MaxPool", [rand("mpn", 1, 1, 4, 4, low=-9, high=-1)], opset=12, kernel_shape=[3, 3],
     pads=[1, 1, 1, 1])
case("count_include_pad", "AveragePool", [rand("acp", 1, 2, 5, 5)], opset=11, kernel_shape=[3, 3], pads=[1, 1, 1, 1],
     count_include_pad=1)
case("count_include_pad_ceil_mode", "AveragePool", [rand("acc", 1, 1, 6, 7)], opset=19, kernel_shape=[3, 3],
     strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1, ceil_mode=1)
case("4d", "GlobalAveragePool", [rand("gap", 2, 3, 5, 7)], opset=9)
case("3d", "GlobalAveragePool", [rand("gap3", 2, 3, 9)], opset=13)
case("5d", "GlobalAveragePool", [rand("gap5", 1, 2, 3, 4, 5)], opset=13)

for reduction, moved in [("ReduceMean", 18), ("ReduceSum", 13)]:
    before = moved - 1
    case("attribute_axes", reduction, [rand(reduction, 2, 3, 4)], opset=before, axes=[1])
    case("attribute_negative_axes", reduction, [rand(reduction + "n", 2, 3, 4)], opset=before, axes=[-1, 0], keepdims=0)
    case("attribute_opset9", reduction, [rand(reduction + "9", 2, 3, 4)], opset=9, axes=[0, 2])
    case("all", reduction, [rand(reduction + "a", 2, 3, 4)], opset=before)
    case("all_without_dims", reduction, [rand(reduction + "d", 2, 3)], opset=before, keepdims=0)
    case("input_axes", reduction, [rand(reduction + "i", 2, 3, 4), ints(2, 0)], const=(1,), opset=moved)
    case("input_axes_without_dims", reduction, [rand(reduction + "w", 2, 3, 4), ints(-2)], const=(1,), opset=moved, keepdims=0)
    case("empty_axes_is_all", reduction, [rand(reduction + "e", 2, 3), ints()], const=(1,), opset=moved)
    case("empty_axes_is_none", reduction, [rand(reduction + "z", 2, 3), ints()], const=(1,), opset=moved,
         noop_with_empty_axes=1)
    case("absent_axes_is_all", reduction, [rand(reduction + "q", 2, 3)], opset=moved)
    case("absent_axes_is_none", reduction, [rand(reduction + "k", 2, 3)], opset=moved, noop_with_empty_axes=1)
case("int64", "ReduceSum", [np.arange(6, dtype=np.int64).reshape(2, 3), ints(1)], const=(1,), opset=13)

# --- types and quantization -------------------------------------------------------------------------------------------
VALUES = f32(-2.7, -0.5, 0.0, 0.5, 1.0, 3.9, 100.0)
for label, to in [("int64", TensorProto.INT64), ("int32", TensorProto.INT32), ("int8", TensorProto.INT8),
                  ("bool", TensorProto.BOOL), ("float16", TensorProto.FLOAT16), ("double", TensorProto.DOUBLE),
                  ("float", TensorProto.FLOAT)]:
    case(f"float_to_{label}", "Cast", [VALUES], opset=13, to=to)
case("float_to_uint8", "Cast", [f32(0.0, 1.9, 254.5)], opset=13, to=TensorProto.UINT8)
for label, array in [("float16", np.float16([0.1, -2, 65504])), ("double", np.float64([0.1, -2])), ("int64", ints(-3, 70000)),
                     ("int32", np.int32([-3, 70000])), ("uint8", np.uint8([0, 255])), ("int8", np.int8([-128, 127])),
                     ("bool", np.array([True, False]))]:
    case(f"{label}_to_float", "Cast", [array], opset=9, to=TensorProto.FLOAT)
case("int64_to_int32", "Cast", [ints(-3, 7)], opset=19, to=TensorProto.INT32)

WIDE = rand("wide", 2, 4, 6, low=-300, high=300)
TIES = f32(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.5, 254.5, 300.0, -300.0)
case("uint8", "QuantizeLinear", [WIDE, scalar(2.0), scalar(128, np.uint8)], const=(1, 2), opset=13)
case("int8", "QuantizeLinear", [WIDE, scalar(1.5), scalar(0, np.int8)], const=(1, 2), opset=10)
case("ties_to_even", "QuantizeLinear", [TIES, scalar(1.0), scalar(0, np.int8)], const=(1, 2), opset=13)
case("no_zero_point", "QuantizeLinear", [TIES, scalar(1.0)], const=(1,), opset=13)
case("per_axis", "QuantizeLinear", [WIDE, f32(1, 2, 3, 4), np.uint8([0, 100, 128, 255])], const=(1, 2), opset=13)
case("per_negative_axis", "QuantizeLinear", [WIDE, f32(1, 2, 3, 4, 5, 6), np.int8([0, 1, 2, 3, 4, -5])], const=(1, 2),
     opset=13, axis=-1)
case("output_dtype", "QuantizeLinear", [WIDE, scalar(2.0)], const=(1,), opset=21, output_dtype=TensorProto.INT8)
case("uint16", "QuantizeLinear", [WIDE, scalar(0.01), scalar(32768, np.uint16)], const=(1, 2), opset=21)
case("blocked", "QuantizeLinear", [WIDE, rand("qb", 2, 4, 3, low=1, high=3), codes("qz", 2, 4, 3)], const=(1, 2), opset=21,
     axis=2, block_size=2)
case("blocked_with_tail", "QuantizeLinear", [WIDE, rand("qbt", 2, 2, 6, low=1, high=3), codes("qzt", 2, 2, 6)], const=(1, 2),
     opset=21, axis=1, block_size=3)

BYTES = codes("dq", 2, 4, 6)
SIGNED = codes("dqs", 4, 3, 2, 2, dtype=np.int8)
case("uint8", "DequantizeLinear", [BYTES, scalar(0.25), scalar(128, np.uint8)], const=(1, 2), opset=10)
case("int8_weight", "DequantizeLinear", [SIGNED, f32(0.1, 0.2, 0.3, 0.4), np.int8([0, 0, 0, 0])], const=(0, 1, 2), opset=13,
     axis=0)
case("int8_no_zero_point", "DequantizeLinear", [SIGNED, scalar(0.5)], const=(1,), opset=13)
case("int32_bias", "DequantizeLinear", [np.int32([100000, -3, 7]), f32(0.1, 0.2, 0.3)], const=(0, 1), opset=13, axis=0)
case("negative_axis", "DequantizeLinear", [SIGNED, f32(0.1, 0.7), np.int8([3, -4])], const=(0, 1, 2), opset=13, axis=-1)
case("uint16", "DequantizeLinear", [codes("dq16", 5, dtype=np.uint16), scalar(0.01), scalar(32768, np.uint16)],
     const=(1, 2), opset=21)
case("blocked", "DequantizeLinear", [BYTES, rand("db", 2, 2, 6, low=0.1, high=1), codes("dz", 2, 2, 6)], const=(1, 2),
     opset=21, axis=1, block_size=2)
case("int4_blocked", "DequantizeLinear",
     [four_bit(TensorProto.INT4, [2, 6], [-8, 7, 1, -1, 0, 3, 2, -2, 5, -5, 6, 7]), rand("d4", 2, 3, low=0.1, high=1)],
     const=(0, 1), opset=21, axis=1, block_size=2)
case("uint4_per_axis_odd", "DequantizeLinear",
     [four_bit(TensorProto.UINT4, [3, 3], [0, 15, 1, 2, 3, 4, 5, 6, 7]), f32(0.5, 1.0, 2.0),
      four_bit(TensorProto.UINT4, [3], [8, 7, 0])], const=(0, 1, 2), opset=21, axis=0)
