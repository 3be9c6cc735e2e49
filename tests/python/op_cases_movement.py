"""The cases of operators that move data, make shapes or make constants; op_cases.ALL_CASES holds them too."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from op_cases import CASES, OpCase, case, codes, f32, ints, rand, scalar

X = rand("movement", 2, 3, 4)
IMAGE = rand("image", 1, 2, 4, 6)

# --- joining and cutting ----------------------------------------------------------------------------------------------
case("axis_1", "Concat", [X, rand("cc", 2, 5, 4)], opset=9, axis=1)
case("negative_axis_three", "Concat", [X, rand("c2", 2, 3, 1), rand("c3", 2, 3, 2)], opset=13, axis=-1)
case("one", "Concat", [X], opset=13, axis=0)
case("empty_part", "Concat", [X, np.zeros((2, 0, 4), np.float32)], opset=13, axis=1)
case("int64", "Concat", [ints(1, 2), ints(3)], opset=13, axis=0)
case("attribute_sizes_opset11", "Split", [X], opset=11, outputs=2, axis=2, split=[1, 3])
case("equal_parts_opset9", "Split", [X], opset=9, outputs=3, axis=1)
case("input_sizes", "Split", [X, ints(1, 2)], const=(1,), opset=13, outputs=2, axis=1)
case("equal_parts_opset13", "Split", [X], opset=13, outputs=2, axis=-1)
case("num_outputs_uneven", "Split", [rand("spl", 7, 2)], opset=18, outputs=3, num_outputs=3)
case("attributes_opset9", "Slice", [X], opset=9, starts=[0, 1], ends=[1, 1000], axes=[0, 2])
case("attributes_negative_opset9", "Slice", [X], opset=9, starts=[-3, -2], ends=[-1, 9], axes=[1, 2])
case("inputs", "Slice", [X, ints(1, 0), ints(3, 2), ints(1, 2)], const=(1, 2, 3), opset=10)
case("steps", "Slice", [X, ints(0), ints(4), ints(2), ints(2)], const=(1, 2, 3, 4), opset=11)
case("reversed", "Slice", [X, ints(-1), ints(-(2**31)), ints(-1), ints(-1)], const=(1, 2, 3, 4), opset=13)
case("reversed_steps", "Slice", [X, ints(3), ints(0), ints(2), ints(-2)], const=(1, 2, 3, 4), opset=13)
case("past_the_end", "Slice", [X, ints(1), ints(2**31 - 1), ints(1)], const=(1, 2, 3), opset=13)
case("empty", "Slice", [X, ints(3), ints(1), ints(2)], const=(1, 2, 3), opset=13)
case("default_axes", "Slice", [X, ints(0, 1), ints(1, 3)], const=(1, 2), opset=13)

for mode in ["constant", "edge", "reflect"]:
    case(f"{mode}", "Pad", [IMAGE, ints(0, 0, 1, 2, 0, 0, 2, 1)], const=(1,), opset=13, mode=mode)
    case(f"{mode}_attribute_opset9", "Pad", [IMAGE], opset=9, mode=mode, pads=[0, 0, 2, 1, 0, 0, 1, 3])
case("value", "Pad", [IMAGE, ints(0, 0, 1, 0, 0, 1, 0, 2), scalar(-1.5)], const=(1, 2), opset=13)
case("value_attribute_opset10", "Pad", [IMAGE], opset=10, pads=[0, 0, 1, 1, 0, 0, 1, 1], value=7.0)
case("crops", "Pad", [IMAGE, ints(0, 0, -1, 1, 0, 0, 0, -2)], const=(1,), opset=13)
case("axes", "Pad", [IMAGE, ints(1, 2, 0, 1), None, ints(-2, -1)], const=(1, 3), opset=18)
case("wrap", "Pad", [IMAGE, ints(0, 0, 1, 2, 0, 0, 1, 2)], const=(1,), opset=19, mode="wrap")

# --- the same elements under another shape ----------------------------------------------------------------------------
case("plain", "Reshape", [X, ints(4, 6)], const=(1,), opset=9)
case("minus_one", "Reshape", [X, ints(2, -1)], const=(1,), opset=13)
case("zero_copies", "Reshape", [X, ints(0, -1, 2)], const=(1,), opset=14)
case("allowzero", "Reshape", [np.zeros((0, 3), np.float32), ints(3, 0)], const=(1,), opset=14, allowzero=1)
case("to_scalar", "Reshape", [f32(2.5), ints()], const=(1,), opset=13)
case("default", "Flatten", [X], opset=9)
case("axis_0", "Flatten", [X], opset=11, axis=0)
case("negative_axis", "Flatten", [X], opset=13, axis=-1)
case("axis_is_rank", "Flatten", [X], opset=13, axis=3)
UNIT = rand("unit", 1, 1, 4, 1)
case("attribute_opset11", "Squeeze", [UNIT], opset=11, axes=[0])
case("attribute_negative_opset11", "Squeeze", [UNIT], opset=11, axes=[-1, 1])
case("input", "Squeeze", [UNIT, ints(0)], const=(1,), opset=13)
case("input_negative", "Squeeze", [UNIT, ints(-1, 0)], const=(1,), opset=13)
case("all", "Squeeze", [UNIT], opset=13)
case("all_opset9", "Squeeze", [UNIT], opset=9)
case("attribute_opset9", "Unsqueeze", [X], opset=9, axes=[0, 4])
case("attribute_negative_opset11", "Unsqueeze", [X], opset=11, axes=[-1])
case("input", "Unsqueeze", [X, ints(0, 2)], const=(1,), opset=13)
case("input_unsorted_negative", "Unsqueeze", [X, ints(-1, 0)], const=(1,), opset=13)
case("scalar", "Unsqueeze", [scalar(2.0), ints(0)], const=(1,), opset=13)
case("reversed_by_default", "Transpose", [X], opset=9)
case("perm", "Transpose", [rand("tp", 2, 3, 4, 5)], opset=13, perm=[0, 2, 3, 1])
case("perm_with_ones", "Transpose", [rand("tp1", 1, 3, 1, 5)], opset=13, perm=[3, 0, 1, 2])
case("bytes", "Transpose", [codes("tb", 3, 4)], opset=13, perm=[1, 0])
case("more_dims", "Expand", [rand("ex", 3, 1), ints(2, 1, 4)], const=(1,), opset=9)
case("both_ways", "Expand", [rand("ex2", 3, 4), ints(3, 1)], const=(1,), opset=13)
case("scalar", "Expand", [scalar(1.5), ints(2, 2)], const=(1,), opset=13)
case("float", "Identity", [X], opset=9)
case("int64", "Identity", [ints(1, 2)], opset=16)
case("inference_opset9", "Dropout", [X], opset=9, ratio=0.7)
case("inference_opset12", "Dropout", [X], opset=12)
case("ratio_and_false_mode", "Dropout", [X, scalar(0.3), np.array(False)], const=(1, 2), opset=13)

# --- picking elements, sizes and sequences ----------------------------------------------------------------------------
case("rows", "Gather", [X, ints(1, 0)], const=(1,), opset=9)
case("axis_1_matrix", "Gather", [X, np.array([[0, 2], [1, 1]])], const=(1,), opset=11, axis=1)
case("negative_indices", "Gather", [X, ints(-1, -3)], const=(1,), opset=13, axis=-2)
case("scalar_index", "Gather", [X, scalar(1, np.int64)], const=(1,), opset=13, axis=2)
case("int32_indices", "Gather", [X, np.int32([0, 1, 1])], opset=13)
case("int64_data", "Gather", [ints(5, 6, 7), ints(2)], opset=13)
case("whole", "Shape", [X], opset=9)
case("start_end", "Shape", [X], opset=15, start=1, end=-1)
case("negative_start", "Shape", [X], opset=15, start=-2)
case("int64", "Range", [scalar(2, np.int64), scalar(11, np.int64), scalar(3, np.int64)], const=(0, 1, 2), opset=11)
case("negative_step", "Range", [scalar(5, np.int64), scalar(-1, np.int64), scalar(-2, np.int64)], const=(0, 1, 2), opset=11)
case("float", "Range", [scalar(0.5), scalar(2.0), scalar(0.25)], const=(0, 1, 2), opset=11)
case("empty", "Range", [scalar(5, np.int64), scalar(5, np.int64), scalar(1, np.int64)], const=(0, 1, 2), opset=11)
case("zeros_by_default", "ConstantOfShape", [ints(2, 3)], const=(0,), opset=9)
case("value", "ConstantOfShape", [ints(4)], const=(0,), opset=9, value=numpy_helper.from_array(np.array([7], np.int64)))
case("scalar", "ConstantOfShape", [ints()], const=(0,), opset=9, value=numpy_helper.from_array(f32(1.5)))
case("value_opset9", "Constant", [], opset=9, value=numpy_helper.from_array(X))
case("value_float", "Constant", [], opset=12, value_float=2.5)
case("value_floats", "Constant", [], opset=13, value_floats=[1.0, 2.0])
case("value_int", "Constant", [], opset=13, value_int=7)
case("value_ints", "Constant", [], opset=13, value_ints=[7, 8])


# --- resizing ---------------------------------------------------------------------------------------------------------
def resize(label, *, image=IMAGE, scales=None, sizes=None, opset=13, **attributes):
    # Between opset 11 and 12 the unused inputs were written as empty tensors.
    roi = np.zeros(0, np.float32) if opset < 13 else None
    inputs = [image, roi, None if scales is None else f32(*scales)]
    if scales is None and opset < 13:
        inputs[2] = np.zeros(0, np.float32)
    if sizes is not None:
        inputs.append(ints(*sizes))
    case(label, "Resize", inputs, const=(1, 2, 3), opset=opset, **attributes)


case("nearest_opset10", "Resize", [IMAGE, f32(1, 1, 2, 2)], const=(1,), opset=10, mode="nearest")
case("linear_opset10", "Resize", [IMAGE, f32(1, 1, 2, 3)], const=(1,), opset=10, mode="linear")
case("nearest_down_opset10", "Resize", [IMAGE, f32(1, 1, 0.5, 0.5)], const=(1,), opset=10, mode="nearest")
case("linear_both_ways_opset10", "Resize", [IMAGE, f32(1, 1, 0.5, 2)], const=(1,), opset=10, mode="linear")
resize("nearest_asymmetric_floor", scales=(1, 1, 2, 2), opset=11, mode="nearest",
       coordinate_transformation_mode="asymmetric", nearest_mode="floor")
resize("nearest_sizes_opset11", sizes=(1, 2, 7, 9), opset=11, mode="nearest")
resize("nearest_default", scales=(1, 1, 1.5, 0.5), mode="nearest")
resize("nearest_ceil", sizes=(1, 2, 3, 11), mode="nearest", nearest_mode="ceil", coordinate_transformation_mode="asymmetric")
resize("nearest_prefer_ceil", sizes=(1, 2, 3, 11), mode="nearest", nearest_mode="round_prefer_ceil")
resize("linear_half_pixel", sizes=(1, 2, 8, 9), mode="linear")
resize("linear_pytorch_half_pixel", sizes=(1, 2, 1, 9), mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
resize("linear_align_corners", sizes=(1, 2, 8, 9), mode="linear", coordinate_transformation_mode="align_corners")
resize("linear_asymmetric", scales=(1, 1, 2, 2), mode="linear", coordinate_transformation_mode="asymmetric")
resize("linear_down", scales=(1, 1, 0.5, 0.5), mode="linear")
resize("cubic", scales=(1, 1, 2, 2), mode="cubic")
resize("cubic_exclude_outside", sizes=(1, 2, 7, 9), mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
for mode in ["nearest", "linear", "cubic"]:  # two pictures of more channels than one step takes
    resize(f"{mode}_channels", image=rand("channels", 2, 17, 5, 7), scales=(1, 1, 1.6, 0.8), mode=mode)
for mode in ["nearest", "linear"]:
    resize(f"{mode}_channels_last", image=rand("channels last", 2, 5, 7, 3), sizes=(2, 9, 4, 3), mode=mode)
    resize(f"{mode}_matrix", image=rand("matrix", 5, 7), sizes=(9, 4), mode=mode)
    resize(f"{mode}_line", image=rand("line", 2, 3, 7), scales=(1, 1, 2.5), mode=mode)
resize("linear_volume", image=rand("volume", 1, 2, 3, 4, 5), sizes=(1, 2, 6, 3, 7), mode="linear")
resize("nearest_bytes", image=codes("bytes", 1, 9, 4, 5), scales=(1, 1, 2, 2), mode="nearest")
case("axes_opset18", "Resize", [IMAGE, None, None, ints(8, 9)], const=(3,), opset=18, mode="linear", axes=[2, 3])

# --- shape arithmetic as exporters write it ---------------------------------------------------------------------------
CASES.append(
    OpCase(
        "Shape_flatten_by_arithmetic",
        "Shape",
        13,
        [
            helper.make_node("Shape", ["x0"], ["s"]),
            helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
            helper.make_node("Unsqueeze", ["n", "first"], ["n1"]),
            helper.make_node("Concat", ["n1", "rest"], ["t"], axis=0),
            helper.make_node("Reshape", ["x0", "t"], ["y0"]),
        ],
        {"x0": X},
        {
            "zero": numpy_helper.from_array(scalar(0, np.int64), "zero"),
            "first": numpy_helper.from_array(ints(0), "first"),
            "rest": numpy_helper.from_array(ints(-1), "rest"),
        },
        ["y0"],
    )
)
CASES.append(
    OpCase(
        "Where_expand_with_minus_one",
        "Where",
        13,
        [
            helper.make_node("ConstantOfShape", ["rank"], ["ones"], value=numpy_helper.from_array(ints(1))),
            helper.make_node("Equal", ["wish", "minus"], ["is_minus"]),
            helper.make_node("Where", ["is_minus", "ones", "wish"], ["target"]),
            helper.make_node("Expand", ["x0", "target"], ["y0"]),
        ],
        {"x0": rand("wem", 1, 3, 4)},
        {
            "rank": numpy_helper.from_array(ints(3), "rank"),
            "wish": numpy_helper.from_array(ints(2, -1, -1), "wish"),
            "minus": numpy_helper.from_array(ints(-1), "minus"),
        },
        ["y0"],
    )
)
CASES.append(
    OpCase(
        "Cast_half_size_by_arithmetic",
        "Cast",
        13,
        [
            helper.make_node("Shape", ["x0"], ["s"]),
            helper.make_node("Slice", ["s", "two", "four"], ["hw"]),
            helper.make_node("Cast", ["hw"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["f", "half"], ["g"]),
            helper.make_node("Cast", ["g"], ["i"], to=TensorProto.INT64),
            helper.make_node("Slice", ["s", "none", "two"], ["nc"]),
            helper.make_node("Concat", ["nc", "i"], ["sizes"], axis=0),
            helper.make_node("Resize", ["x0", "", "", "sizes"], ["y0"], mode="nearest"),
        ],
        {"x0": IMAGE},
        {
            "two": numpy_helper.from_array(ints(2), "two"),
            "four": numpy_helper.from_array(ints(4), "four"),
            "none": numpy_helper.from_array(ints(0), "none"),
            "half": numpy_helper.from_array(f32(0.5), "half"),
        },
        ["y0"],
    )
)

ALL_CASES: list[OpCase] = CASES
