"""What all Python tests share: the program under test, small models, small data."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(os.environ.get("CTK_DATA", ROOT / ".." / "shared" / "data")).resolve()
PIPELINES = DATA.parent / "pipelines"   # files that must run as they stand, beside the data
sys.path.insert(0, str(ROOT / "tests"))


def pytest_collection_modifyitems(items):
    for item in items:
        if "slow" not in item.keywords:
            item.add_marker(pytest.mark.fast)


def find_program() -> pathlib.Path:
    for path in (os.environ.get("CTK_COMPRESS", ""), ROOT / ".venv/bin/compress", ROOT / "build/release/bin/compress"):
        if path and pathlib.Path(path).exists():
            return pathlib.Path(path)
    raise FileNotFoundError("compress is not built: run `make setup`")


@functools.cache
def is_sanitized() -> bool:
    """The program is AddressSanitizer's build: its times and its memory say nothing of the product's."""
    return b"__asan_init" in find_program().read_bytes()


def doubled_prefixes(message: str) -> list[str]:
    """Places that a message names twice in a row: "calibrate: calibrate: ...", "--set a: a: ...", "x.npz: x.npz row 0"."""
    found = []
    for line in message.splitlines():
        parts = line.removeprefix("compress: error: ").split(": ")
        for first, second in zip(parts, parts[1:]):
            last = re.split(r"[ /]", first)[-1]
            if last and (second == first or re.split(r"[ ]", second)[0] == last):
                found.append(f"{first}: {second}")
    return found


class Outcome:
    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    @property
    def error(self) -> str:
        """The lines that start with the program's error prefix."""
        return "\n".join(line for line in self.err.splitlines() if line.startswith("compress: error:"))


@pytest.fixture(scope="session")
def program() -> pathlib.Path:
    return find_program()


@pytest.fixture(scope="session")
def product_build():
    """For tests that measure time or memory."""
    if is_sanitized():
        pytest.skip("measures time or memory, and the program is a sanitizer's build")


@pytest.fixture(scope="session")
def compress_run(program):
    """Runs the program: compress_run("run", file, "--output", folder, cwd=..., env={...}) -> Outcome."""

    def run(*words, cwd=None, env=None, timeout=300, preexec_fn=None) -> Outcome:
        full = dict(os.environ, CTK_PYTHON=sys.executable)
        full.update(env or {})
        done = subprocess.run([str(program), *map(str, words)], cwd=cwd, env=full, timeout=timeout, capture_output=True,
                              text=True, errors="replace", preexec_fn=preexec_fn)
        outcome = Outcome(done.returncode, done.stdout, done.stderr)
        assert doubled_prefixes(outcome.error) == [], outcome.error
        assert "runtime error: " not in outcome.err, outcome.err   # UndefinedBehaviorSanitizer's word
        return outcome

    return run


MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime, usage.ru_stime)
"""


def run_measured(words, log) -> tuple[Outcome, object]:
    """Runs the program with both streams into the file `log` -> its outcome (all text as err) and the resources it used."""
    # A child's peak counts what its parent held when it forked: a small process in between keeps pytest's memory out.
    with open(log, "w") as stream:
        between = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, str(find_program()), *map(str, words)], stdout=subprocess.PIPE,
                                 stderr=stream, env=dict(os.environ, CTK_PYTHON=sys.executable), check=True)
    code, peak, user, system = between.stdout.split()[-4:]
    usage = types.SimpleNamespace(ru_maxrss=int(peak), ru_utime=float(user), ru_stime=float(system))
    return Outcome(int(code), "", pathlib.Path(log).read_text(errors="replace")), usage


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    if not DATA.exists():
        pytest.skip(f"real models and data are absent: {DATA} (set CTK_DATA)")
    return DATA


def model_of(nodes, inputs, outputs, weights, opset=17, ir=8, extra_opsets=(), **graph_options) -> onnx.ModelProto:
    """inputs, outputs: {name: (shape, elem_type)}; weights: {name: array}."""
    def infos(table):
        return [helper.make_tensor_value_info(n, t, s) for n, (s, t) in table.items()]

    graph = helper.make_graph(nodes, "test", infos(inputs), infos(outputs),
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()], **graph_options)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *extra_opsets])
    model.ir_version = ir
    return model


F32 = TensorProto.FLOAT


def small_cnn(seed=0, classes=4) -> onnx.ModelProto:
    """Conv 3->8, Relu, Conv 8->8 (residual), Relu, GlobalAveragePool, Flatten, Gemm. Input x [N,3,8,8]."""
    r = np.random.default_rng(seed)
    weights = {
        "w1": r.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32), "b1": r.normal(0, 0.1, 8).astype(np.float32),
        "w2": r.normal(0, 0.2, (8, 8, 3, 3)).astype(np.float32), "b2": r.normal(0, 0.1, 8).astype(np.float32),
        "w3": r.normal(0, 0.5, (classes, 8)).astype(np.float32), "b3": r.normal(0, 0.1, classes).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["s"], "add"),
        helper.make_node("Relu", ["s"], ["r2"], "relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["g"], "gap"),
        helper.make_node("Flatten", ["g"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], "head", transB=1),
    ]
    return model_of(nodes, {"x": (["N", 3, 8, 8], F32)}, {"y": (["N", classes], F32)}, weights)


class Job:
    """A model, its data and a pipeline in one folder; `run` writes and runs it."""

    def __init__(self, folder: pathlib.Path, run):
        self.folder, self._run = folder, run
        self.output = folder / "out"

    def write(self, model, arrays, name="net.onnx"):
        onnx.save(model, self.folder / name)
        np.savez(self.folder / "data.npz", **arrays)

    def pipeline(self, *, scheme="w8a8_c", method="minmax", formats=("onnx_qdq", "bundle"), calibrate=None, evaluate=None,
                 stages=None, budget=None, seed=0, model="net.onnx", validate=True, **extra) -> pathlib.Path:
        """calibrate/evaluate: dicts of source keys beside path (default: first half, second half of data.npz)."""
        config = {"model": model, "output": "out", "seed": seed, "data": {}}
        if calibrate is not None:
            config["data"]["calibrate"] = {"path": "data.npz", **calibrate}
        if evaluate is not None:
            config["data"]["evaluate"] = {"path": "data.npz", **evaluate}
        if budget:
            config["budget"] = budget
        config["stages"] = stages or [{"calibrate": {"method": method}}, {"quantize": {"method": "rtn", "scheme": scheme}},
                                      {"export": {"formats": list(formats)}}]
        if validate and stages is None and evaluate is not None:
            config["stages"].append({"validate": {"against": ["onnxruntime"]}})
        config.update(extra)
        path = self.folder / "pipeline.yaml"
        path.write_text(json.dumps(config, indent=1))
        return path

    def run(self, *words, env=None, **kwargs) -> Outcome:
        return self._run("run", self.folder / "pipeline.yaml", *words, env=env, **kwargs)

    def report(self) -> dict:
        return json.loads((self.output / "report.json").read_text())


@pytest.fixture
def job(tmp_path, compress_run) -> Job:
    return Job(tmp_path, compress_run)


def onnxruntime_outputs(model, feeds, exact=True) -> list[np.ndarray]:
    """exact: nodes run as written. ONNX Runtime's fused int8 kernels saturate on processors without VNNI."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if exact:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def relative_error(got, want) -> float:
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))
