"""MobileNetV2 on the photos: our w8a8_c beside ONNX Runtime's static INT8 on the same 50 calibration pictures.

Usage: python tests/bench/mobilenetv2_static_int8.py OUTPUT_OF_mobilenetv2-int8.yaml
Prints, for the 50 evaluation pictures, arg-max agreement with the float network and SQNR of the logits; the peer's file
runs once as written (graph optimizations off: exact sums) and once with its own int8 kernels.
"""

import os
import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from PIL import Image

import compress

DATA = pathlib.Path(os.environ.get("CTK_DATA", pathlib.Path(__file__).parents[2] / "../shared/data")).resolve() / "imagenet100"
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def pictures():
    arrays = []
    for path in sorted((DATA / "images").glob("*.jpg")):
        pixels = np.asarray(Image.open(path).convert("RGB"), np.float64)
        arrays.append(((pixels / 255 - MEAN) / STD).transpose(2, 0, 1).astype(np.float32))
    return np.stack(arrays)


class Reader(CalibrationDataReader):
    def __init__(self, name, arrays):
        self.items = iter([{name: a[None]} for a in arrays])

    def get_next(self):
        return next(self.items, None)


def outputs(path, x, exact):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if exact:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: x[i:i + 1]})[0] for i in range(len(x))])


def line(label, got, want):
    noise = ((got - want).astype(np.float64) ** 2).sum()
    sqnr = 10 * np.log10((want.astype(np.float64) ** 2).sum() / noise)
    print(f"{label:42s} agreement {np.mean(got.argmax(1) == want.argmax(1)):.3f}  SQNR {sqnr:.2f} dB")


def main():
    x = pictures()
    model = DATA / "mobilenet_v2_imagenet.onnx"
    want = outputs(model, x[50:], exact=False)
    name = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"]).get_inputs()[0].name
    with tempfile.TemporaryDirectory() as folder:
        ready, peer = f"{folder}/ready.onnx", f"{folder}/int8.onnx"
        quant_pre_process(str(model), ready, skip_symbolic_shape=True)
        quantize_static(ready, peer, Reader(name, x[:50]), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        line("ONNX Runtime static INT8, exact", outputs(peer, x[50:], exact=True), want)
        line("ONNX Runtime static INT8, its own kernels", outputs(peer, x[50:], exact=False), want)
    ours = compress.load(pathlib.Path(sys.argv[1]) / "model.ctkb")
    line("ours, w8a8_c", ours.run({name: x[50:]})[ours.outputs[0]], want)


main()
