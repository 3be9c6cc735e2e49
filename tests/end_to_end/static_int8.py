"""The peer: ONNX Runtime's static INT8 quantization of the MobileNetV2 on the photos, by its own calibration."""

import numpy as np
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from PIL import Image

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def pictures(folder) -> np.ndarray:
    """float32 [100, 3, 224, 224], in the order of the names, prepared as mobilenetv2-int8.yaml says."""
    arrays = []
    for path in sorted(folder.glob("*.jpg")):
        pixels = np.asarray(Image.open(path).convert("RGB"), np.float64)
        arrays.append(((pixels / 255 - MEAN) / STD).transpose(2, 0, 1).astype(np.float32))
    return np.stack(arrays)


class Reader(CalibrationDataReader):
    def __init__(self, name, arrays):
        self.items = iter([{name: a[None]} for a in arrays])

    def get_next(self):
        return next(self.items, None)


def input_name(path) -> str:
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()[0].name


def outputs(path, x, exact) -> np.ndarray:
    """Of each sample by itself. exact: nodes run as written, sums exact; else with ONNX Runtime's own int8 kernels."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if exact:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: x[i:i + 1]})[0] for i in range(len(x))])


def quantize(model, calibration, folder):
    """Writes the INT8 file, activations uint8, a scale per channel of int8 weights; hands back its path."""
    ready, peer = folder / "ready.onnx", folder / "int8.onnx"
    quant_pre_process(str(model), str(ready), skip_symbolic_shape=True)
    quantize_static(str(ready), str(peer), Reader(input_name(model), calibration), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return peer


def agreement(got, want) -> float:
    return float(np.mean(got.argmax(1) == want.argmax(1)))


def sqnr_db(got, want) -> float:
    noise = ((got - want).astype(np.float64) ** 2).sum()
    return float(10 * np.log10((want.astype(np.float64) ** 2).sum() / noise))
