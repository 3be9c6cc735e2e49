"""One model, one run: compresses a small ONNX model and hands back what was written, for tests that look inside."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from conftest import F32, Job, Outcome, model_of, onnxruntime_outputs
from onnx import helper, numpy_helper

__all__ = ["F32", "Written", "compress_model", "conv_model", "gaussian", "node", "one_layer"]


def node(op, inputs, outputs, name="", **attributes):
    return helper.make_node(op, inputs, outputs, name, **attributes)


def gaussian(*shape, seed=0, scale=1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def one_layer(op, weights, x_shape, y_shape, opset=17, ir=8, **attributes) -> onnx.ModelProto:
    """x -> op(x, *weights) -> y; weights: {name: array} in the order of the inputs."""
    return model_of([node(op, ["x", *weights], ["y"], "layer", **attributes)], {"x": (x_shape, F32)}, {"y": (y_shape, F32)},
                    weights, opset=opset, ir=ir)


def conv_model(W, x_shape, y_shape, bias=None, **attributes) -> onnx.ModelProto:
    weights = {"W": W} if bias is None else {"W": W, "b": bias}
    return one_layer("Conv", weights, x_shape, y_shape, **attributes)


@dataclasses.dataclass
class Written:
    source: onnx.ModelProto
    model: onnx.ModelProto     # the written ONNX file
    report: dict
    outcome: Outcome
    job: Job

    def run(self, **feeds) -> list[np.ndarray]:
        """Outputs of the written file in ONNX Runtime, node by node as written."""
        return onnxruntime_outputs(self.model, feeds)

    def run_source(self, **feeds) -> list[np.ndarray]:
        return onnxruntime_outputs(self.source, feeds)

    def run_bundle(self, **feeds) -> dict[str, np.ndarray]:
        import compress

        return compress.load(self.job.output / "model.ctkb").run(feeds)

    @property
    def opset(self) -> int:
        return next(o.version for o in self.model.opset_import if o.domain == "")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {i.name: numpy_helper.to_array(i) for i in self.model.graph.initializer}

    def nodes(self, op) -> list[onnx.NodeProto]:
        return [n for n in self.model.graph.node if n.op_type == op]

    def reader_of(self, value) -> list[onnx.NodeProto]:
        return [n for n in self.model.graph.node if value in n.input]

    def weight_dequantizers(self) -> list[onnx.NodeProto]:
        """DequantizeLinear nodes whose codes are stored in the file with two or more dimensions."""
        arrays = self.arrays
        return [n for n in self.nodes("DequantizeLinear") if n.input[0] in arrays and arrays[n.input[0]].ndim >= 2]

    def axis(self, dequantizer) -> int | None:
        return next((a.i for a in dequantizer.attribute if a.name == "axis"), None)

    def range_of(self, value) -> tuple[float, float]:
        row = next(r for r in self.report["ranges"] if r["name"] == value)
        return row["low"], row["high"]

    @property
    def schemes(self) -> dict[str, str]:
        return {layer["name"]: layer["scheme"] for layer in self.report["layers"]}

    def warning_text(self) -> str:
        return "\n".join(w["text"] for w in self.report["warnings"])


def compress_model(job, model, arrays, *, scheme="w8a8_c", formats=("onnx_qdq", "bundle"), samples=None, **keys) -> Written:
    """Calibrates on `arrays` (one entry per graph input, samples first), rounds every layer, writes; all must succeed."""
    job.write(model, arrays)
    stages = keys.pop("stages", None) or [{"calibrate": {"method": "minmax"}},
                                          {"quantize": {"method": "rtn", "scheme": scheme, **keys.pop("quantize", {})}},
                                          {"export": {"formats": list(formats)}}]
    source = {} if samples is None else {"samples": samples}
    source |= keys.pop("calibrate", {})
    job.pipeline(calibrate=source, stages=stages, threads=1, **keys)
    outcome = job.run()
    assert outcome.code == 0, outcome.err
    written = onnx.load(job.output / "model_qdq.onnx")
    onnx.checker.check_model(written, full_check=True)
    return Written(model, written, job.report(), outcome, job)
