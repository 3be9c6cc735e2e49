"""Names of nodes that a file may hold and a message must survive."""

from conftest import model_of
from quantized import F32, compress_model, gaussian, node


def test_a_name_with_control_characters_stays_on_its_line(job):
    # A MatMul of two activations: no layer, so the run stops and tells why by name.
    shape = (["N", 4, 4], F32)
    model = model_of([node("MatMul", ["x", "x"], ["y"], "a\nb\x1b[31m")], {"x": shape}, {"y": shape}, {})
    job.write(model, {"x": gaussian(16, 4, 4)})
    job.pipeline(calibrate={})
    outcome = job.run()
    assert outcome.code == 2
    lines = [line for line in outcome.err.splitlines() if line.startswith("compress: error: ")]
    assert len(lines) == 1 and "a\\nb\\x1b[31m (MatMul)" in lines[0] and "\x1b" not in outcome.err


def test_a_pattern_matches_the_name_as_the_file_has_it(job):
    nodes = [node("MatMul", ["x", "W"], ["h"], "a\nb"), node("MatMul", ["h", "V"], ["y"], "other")]
    shape = (["N", 8], F32)
    model = model_of(nodes, {"x": shape}, {"y": shape}, {"W": gaussian(8, 8), "V": gaussian(8, 8, seed=1)})
    out = compress_model(job, model, {"x": gaussian(16, 8)}, quantize={"ignore": ["a\nb"]})
    assert out.schemes["a\nb"] == "fp32" and out.schemes["other"] == "w8a8_c"
