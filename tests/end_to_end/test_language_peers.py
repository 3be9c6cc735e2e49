"""Other people's runtimes on written language models: what validate says where they are, and where they are not."""

import json
import sys

import pytest


def pipeline(shared_data, tmp_path, against):
    stories = shared_data / "stories260k"
    path = tmp_path / "p.yaml"
    path.write_text(f"""model: {stories}
output: out
data:
  evaluate: {{path: {stories}/tinystories_eval.txt, lines: true, bos: true, context: 128, metric: perplexity, samples: 4}}
stages:
  - quantize: {{method: rtn, scheme: w4a16_g32}}
  - export: {{formats: [gguf, safetensors, onnx_nbits, bundle]}}
  - validate: {{against: [{', '.join(against)}]}}
""")
    return path


def rows(tmp_path):
    report = json.loads((tmp_path / "out/report.json").read_text())
    return {c["against"]: c for c in report["checks"]}, report["warnings"]


def test_onnx_runtime_agrees_on_the_decoder(compress_run, shared_data, tmp_path):
    pytest.importorskip("onnxruntime")
    done = compress_run("run", pipeline(shared_data, tmp_path, ["onnxruntime"]))
    assert done.code == 0, done.err
    row = rows(tmp_path)[0]["onnxruntime"]
    assert row["file"] == "model_nbits.onnx" and row["result"].startswith("agrees")
    # Activations of groups are rounded to 16 bits by our kernels, floats there.
    assert row["agreement"] >= 0.99 and row["max_error"] < 1e-3


def test_absent_peers_are_said(compress_run, shared_data, tmp_path):
    # A Python without site packages has none of them.
    lonely = tmp_path / "python"
    lonely.write_text(f"#!/bin/sh\nexec {sys.executable} -S -E \"$@\"\n")
    lonely.chmod(0o755)
    environment = {"CTK_PYTHON": str(lonely), "VIRTUAL_ENV": "", "PATH": "/nowhere"}
    peers = {"llama.cpp": "llama-cpp-python", "transformers": "torch transformers compressed-tensors"}
    done = compress_run("run", pipeline(shared_data, tmp_path, peers), env=environment)
    assert done.code == 0, done.err
    checks, warnings = rows(tmp_path)
    for peer, package in peers.items():
        assert checks[peer]["result"].startswith("not run: no Python with " + package)
        assert checks[peer]["agreement"] is None
        assert any(w["code"] == "check_not_run" and peer in w["text"] for w in warnings)


def test_file_that_was_not_written_is_a_clear_error(compress_run, shared_data, tmp_path):
    path = pipeline(shared_data, tmp_path, ["llama.cpp"])
    path.write_text(path.read_text().replace("gguf, ", ""))
    refused = compress_run("check", path)
    assert refused.code == 2 and "gguf" in refused.error
