"""Checkpoint folders on the command line: what is shown, and what is said of folders that are no checkpoints."""

import json
import sys

import numpy as np

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
from decoder_reference import decoder_logits, decoder_shapes, random_weights, safetensors_bytes  # noqa: E402

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 48, "intermediate_size": 70,
          "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 61,
          "max_position_embeddings": 128, "tie_word_embeddings": False}


def write(folder, config=CONFIG, change=None):
    weights = random_weights(decoder_shapes(CONFIG), 7)
    if change:
        change(weights)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(weights))
    return folder


def test_graph_show_prints_a_folder(compress_run, tmp_path):
    shown = compress_run("graph", "show", write(tmp_path / "net"))
    assert shown.code == 0, shown.err
    for line in ("input  input_ids i64 [1,sequence]", "output logits f32 [1,sequence,61]", "2 x Attention", "5 x RMSNormalization",
                 "4 x RotaryEmbedding", "15 x Gemm"):
        assert line in shown.out


def test_folder_that_is_no_checkpoint_is_refused(compress_run, tmp_path):
    refused = compress_run("graph", "show", tmp_path)
    assert refused.code == 3
    assert "found a folder without config.json" in refused.error


def test_unknown_architecture_lists_the_known(compress_run, tmp_path):
    refused = compress_run("graph", "show", write(tmp_path / "net", {**CONFIG, "architectures": ["MambaForCausalLM"]}))
    assert refused.code == 3
    assert 'config.json: architectures: expected one of BertModel' in refused.error
    assert "LlamaForCausalLM" in refused.error and 'found "MambaForCausalLM"' in refused.error


def test_wrong_shape_names_tensor_and_both_shapes(compress_run, tmp_path):
    def change(weights):
        weights["model.layers.1.self_attn.k_proj.weight"] = np.zeros((48, 48), np.float32)

    refused = compress_run("graph", "show", write(tmp_path / "net", change=change))
    assert refused.code == 3
    assert 'tensor "model.layers.1.self_attn.k_proj.weight": expected shape [12,48] by config.json, found [48,48]' in refused.error


def test_cut_weights_are_refused(compress_run, tmp_path):
    folder = write(tmp_path / "net")
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for size in (7, 100, len(whole) - 1):
        weights.write_bytes(whole[:size])
        refused = compress_run("graph", "show", folder)
        assert refused.code == 3 and "model.safetensors" in refused.error


def test_a_bundle_holds_bfloat16_as_the_checkpoint_does(compress_run, tmp_path):
    # The same numbers twice: those of 16 bits are exact in 32.
    config = {**CONFIG, "rms_norm_eps": 1e-5}
    weights = {name: (w.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
               for name, w in random_weights(decoder_shapes(CONFIG), 7).items()}
    sizes, bundles = {}, {}
    for dtype in ("F32", "BF16"):
        folder = tmp_path / dtype
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "model.safetensors").write_bytes(safetensors_bytes(weights, dtype))
        done = compress_run("export", folder, "--format", "bundle", "--output", tmp_path / f"out_{dtype}")
        assert done.code == 0, done.error
        bundles[dtype] = tmp_path / f"out_{dtype}" / "model.ctkb"
        # The header (runtime/bundle.h): u64 data bytes at 40.
        sizes[dtype] = int.from_bytes(bundles[dtype].read_bytes()[40:48], "little")

    def stored(array, bytes_each):
        return -(-array.size * bytes_each // 16) * 16

    saved = sum(stored(w, 4) - stored(w, 2) for w in weights.values() if w.ndim == 2)
    assert sizes["F32"] - sizes["BF16"] == saved > 0.45 * sizes["F32"]
    import compress

    ids = np.array([[3, 36, 0, 7, 11]], np.int64)
    wide, narrow = (compress.load(bundles[dtype]).run({"input_ids": ids})["logits"] for dtype in ("F32", "BF16"))
    np.testing.assert_array_equal(narrow, wide)
    np.testing.assert_allclose(narrow[0], decoder_logits(config, weights, ids[0]), rtol=1e-3, atol=1e-4)
    # Files of other formats have floats of 32 bits.
    for dtype in ("F32", "BF16"):
        done = compress_run("export", bundles[dtype], "--format", "onnx_qdq", "--output", tmp_path / f"onnx_{dtype}")
        assert done.code == 0, done.error
    assert (tmp_path / "onnx_F32/model_qdq.onnx").read_bytes() == (tmp_path / "onnx_BF16/model_qdq.onnx").read_bytes()
