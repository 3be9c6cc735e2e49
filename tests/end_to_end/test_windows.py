"""Sliding windows where ONNX Runtime, onnx's shape inference and the operator's specification part ways."""

import numpy as np
import onnx
import pytest
from conftest import model_of
from quantized import F32, compress_model, gaussian, node, one_layer


def behind_a_conv(op, x_shape, y_shape, opset=17, **attributes):
    """x -> 1x1 Conv (2 to 2 channels, "layer") -> op -> y, the size between them undeclared."""
    nodes = [node("Conv", ["x", "W"], ["h"], "layer"), node(op, ["h"], ["y"], "pool", **attributes)]
    return model_of(nodes, {"x": (["N", 2, *x_shape], F32)}, {"y": (["N", 2, *y_shape], F32)},
                    {"W": gaussian(2, 2, 1, 1, seed=1)}, opset=opset)


def expect_same_network(out, x, shape):
    """Written file in ONNX Runtime, written bundle here: one shape, one result."""
    onnx_y, bundle_y = out.run(x=x)[0], out.run_bundle(x=x)["y"]
    assert onnx_y.shape == bundle_y.shape == shape
    assert np.abs(onnx_y - bundle_y).max() <= 1e-5 * np.abs(onnx_y).max()


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel, stride, dilation, size", [(1, 2, 1, 7), (2, 3, 1, 11), (1, 3, 2, 10), (3, 2, 1, 8)])
def test_a_transposed_layer_adds_nothing_past_its_kernels(job, auto_pad, kernel, stride, dilation, size):
    model = one_layer("ConvTranspose", {"W": gaussian(3, 5, kernel, kernel)}, ["N", 3, 4, 4], ["N", 5, size, size],
                      auto_pad=auto_pad, strides=[stride] * 2, dilations=[dilation] * 2)
    x = gaussian(16, 3, 4, 4, seed=2)
    out = compress_model(job, model, {"x": x})
    assert out.run_source(x=x[:4])[0].shape == (4, 5, size, size)
    expect_same_network(out, x[:4], (4, 5, size, size))


def test_output_padding_does_not_grow_a_same_padded_layer(job):
    model = one_layer("ConvTranspose", {"W": gaussian(3, 5, 3, 3)}, ["N", 3, 4, 4], ["N", 5, 8, 8],
                      auto_pad="SAME_LOWER", strides=[2, 2], output_padding=[1, 1])
    x = gaussian(16, 3, 4, 4, seed=2)
    expect_same_network(compress_model(job, model, {"x": x}), x[:4], (4, 5, 8, 8))


@pytest.mark.parametrize("op, opset", [("MaxPool", 17), ("AveragePool", 19)])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_a_dilated_pool_has_the_specified_size_in_the_written_file(job, op, opset, auto_pad):
    # ceil(5 / 3) = 2 and ceil(3 / 1) = 3; read with auto_pad, ONNX Runtime makes 1 and 1 of it.
    model = behind_a_conv(op, (5, 3), (2, 3), opset=opset, auto_pad=auto_pad,
                          kernel_shape=[3, 3], dilations=[2, 2], strides=[3, 1])
    x = gaussian(16, 2, 5, 3, seed=2)
    expect_same_network(compress_model(job, model, {"x": x}), x[:4], (4, 2, 2, 3))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel, stride, dilation", [(1, 3, 1), (2, 2, 2)])
def test_a_same_padded_layer_reads_what_its_written_file_reads(job, auto_pad, kernel, stride, dilation):
    # Left to auto_pad, ONNX Runtime shifts the first by one element and refuses the second.
    size = -(-6 // stride)
    model = one_layer("Conv", {"W": gaussian(3, 2, kernel, kernel)}, ["N", 2, 6, 6], ["N", 3, size, size],
                      auto_pad=auto_pad, strides=[stride] * 2, dilations=[dilation] * 2)
    x = gaussian(16, 2, 6, 6, seed=2)
    expect_same_network(compress_model(job, model, {"x": x}), x[:4], (4, 3, size, size))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_a_window_in_the_padding_does_not_count_for_the_checker(job, op):
    # Rows 8, kernel 1, stride 2: rounding up, a fifth window would start at row 8 of 8.
    model = behind_a_conv(op, (8, 7), (4, 7), kernel_shape=[1, 1], strides=[2, 1], ceil_mode=1)
    with pytest.raises(Exception, match="Inferred shape and existing shape differ"):
        onnx.checker.check_model(model, full_check=True)
    x = gaussian(16, 2, 8, 7, seed=2)
    out = compress_model(job, model, {"x": x})
    assert out.run_source(x=x[:4])[0].shape == (4, 2, 4, 7)
    expect_same_network(out, x[:4], (4, 2, 4, 7))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("rounding", [{}, {"ceil_mode": 1}])
def test_a_window_too_large_by_less_than_a_stride_hangs_over(job, op, rounding):
    model = behind_a_conv(op, (5, 1), (2, 1), kernel_shape=[3, 2], strides=[2, 2], **rounding)
    x = gaussian(16, 2, 5, 1, seed=2)
    out = compress_model(job, model, {"x": x})
    expect_same_network(out, x[:4], (4, 2, 2, 1))
    want = out.run_source(x=x[:4])[0]
    assert np.abs(out.run(x=x[:4])[0] - want).max() <= 0.03 * np.abs(want).max()


def test_a_window_of_padding_is_named_and_not_taken_for_a_bad_sample(job):
    model = behind_a_conv("MaxPool", (4, 1), (4, 1), auto_pad="SAME_UPPER", kernel_shape=[1, 2], dilations=[2, 2])
    job.write(model, {"x": gaussian(16, 2, 4, 1)})
    job.pipeline(calibrate={})
    outcome = job.run()
    assert outcome.code == 3
    assert "pool (MaxPool): window: expected every window to hold an element of the input" in outcome.err
    assert "sample" not in outcome.err
