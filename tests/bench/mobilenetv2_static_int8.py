"""MobileNetV2 on the photos: our w8a8_c beside ONNX Runtime's static INT8 on the same 50 calibration pictures.

Usage: python tests/bench/mobilenetv2_static_int8.py OUTPUT_OF_mobilenetv2-int8.yaml
Prints, for the 50 evaluation pictures, arg-max agreement with the float network and SQNR of the logits; the peer's file
runs once as written (graph optimizations off: exact sums) and once with its own int8 kernels.
"""

import os
import pathlib
import sys
import tempfile

import compress

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
from static_int8 import agreement, input_name, outputs, pictures, quantize, sqnr_db  # noqa: E402

DATA = pathlib.Path(os.environ.get("CTK_DATA", ROOT / "../shared/data")).resolve() / "imagenet100"


def line(label, got, want):
    print(f"{label:42s} agreement {agreement(got, want):.3f}  SQNR {sqnr_db(got, want):.2f} dB")


def main():
    x = pictures(DATA / "images")
    model = DATA / "mobilenet_v2_imagenet.onnx"
    want = outputs(model, x[50:], exact=False)
    with tempfile.TemporaryDirectory() as folder:
        peer = quantize(model, x[:50], pathlib.Path(folder))
        line("ONNX Runtime static INT8, exact", outputs(peer, x[50:], exact=True), want)
        line("ONNX Runtime static INT8, its own kernels", outputs(peer, x[50:], exact=False), want)
    ours = compress.load(pathlib.Path(sys.argv[1]) / "model.ctkb")
    line("ours, w8a8_c", ours.run({input_name(model): x[50:]})[ours.outputs[0]], want)


main()
