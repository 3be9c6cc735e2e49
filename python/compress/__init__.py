"""compress: model compression with quantization search.

    import compress
    graph = compress.load("model.onnx")
    outputs = graph.run({"image": pictures})            # float32 [N, 1, 8, 8] -> {"logits": float32 [N, 10]}
    report = compress.run("pipeline.yaml", progress=print)

Errors raise `compress.Error`; its `code` is the exit code the command line would end with (2 configuration, 3 input,
4 budget cannot be met, 5 gate refused, 130 interrupted).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _core
from ._core import Error, version

__all__ = ["Error", "Graph", "Tokenizer", "chat_prompt", "load", "run", "version"]
__version__ = version()


class Graph:
    """A network that can be run on numpy arrays, by the kernels that would deploy it."""

    def __init__(self, core: _core.Graph) -> None:
        self._core = core

    @property
    def inputs(self) -> dict[str, tuple[str, list[int]]]:
        """Input name -> (dtype such as "f32", shape with -1 for free dimensions)."""
        return {name: (dtype, shape) for name, dtype, shape in self._core.inputs()}

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in the model's order."""
        return self._core.outputs()

    def layers(self) -> list[dict[str, Any]]:
        """Quantizable layers: name, op, scheme, shape of the weight, bits per weight."""
        return self._core.layers()

    def run(self, inputs: Mapping[str, np.ndarray], threads: int = 1) -> dict[str, np.ndarray]:
        """Runs the network once.

        inputs: one array per input, by name, with exactly the dtype the model declares (float32 or integers) and
        its shape; free dimensions take the array's. threads: at least 1; results do not depend on it.
        Returns one array per output. Raises Error (code 3) naming the input, what was expected and found.
        """
        return self._core.run({name: np.asarray(array) for name, array in inputs.items()}, threads)

    def text(self) -> str:
        """The graph in its text form, as `compress graph show` prints it."""
        return self._core.text()


class Tokenizer:
    """Text to token ids and back, by a tokenizer.json, a tokenizer.model of sentencepiece, or a folder that holds one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises Error (code 3) naming the file and what is wrong with it."""
        self._core = _core.open_tokenizer(os.fspath(path))

    @property
    def vocabulary_size(self) -> int:
        """Highest id + 1, added tokens included."""
        return self._core.vocabulary_size()

    @property
    def bos_id(self) -> int | None:
        """The token that starts a text, where the files beside the tokenizer name one."""
        return self._core.bos_id()

    @property
    def eos_id(self) -> int | None:
        """The token that ends a text, where the files beside the tokenizer name one."""
        return self._core.eos_id()

    def id_of(self, token: str) -> int | None:
        """The id of a token, spelled as in the vocabulary."""
        return self._core.id_of(token)

    def encode(self, text: str | bytes, add_special_tokens: bool = False) -> np.ndarray:
        """int64 [n]. bytes need not be UTF-8; add_special_tokens: those of the file's post-processor."""
        return self._core.encode(text.encode() if isinstance(text, str) else text, add_special_tokens)

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> bytes:
        """The text of `ids`; bytes, since a token may hold part of a character."""
        return self._core.decode([int(id) for id in ids], skip_special_tokens)


def chat_prompt(
    template: str,
    messages: Iterable[Mapping[str, str]],
    tokens: Mapping[str, str] | None = None,
    add_generation_prompt: bool = True,
) -> str:
    """Messages as the prompt a model was trained on, by its chat template (Jinja, as transformers renders it).

    messages: maps with `role` and `content`. tokens: bos_token, eos_token and their like, spelled out.
    add_generation_prompt: end where the assistant's answer begins.
    Raises Error (code 3) for a damaged template, one that uses what is not known, and messages it refuses.
    """
    pairs = [(message["role"], message["content"]) for message in messages]
    return _core.chat_prompt(template, pairs, dict(tokens or {}), add_generation_prompt)


def load(path: str | os.PathLike[str]) -> Graph:
    """Reads an .onnx file, a bundle or a checkpoint folder. Raises Error (code 3) naming the file and what is wrong with it."""
    return Graph(_core.load(os.fspath(path)))


def run(
    pipeline: str | os.PathLike[str] | Mapping[str, Any],
    *,
    output: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    threads: int = 0,
    force: bool = False,
    resume: bool = True,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, Any]:
    """Runs a pipeline and returns its report as a dict (the contents of report.json).

    pipeline: path of a YAML file, or the same as a dict; paths in a dict are relative to the working directory.
    overrides: dotted key -> value, as `--set`. threads: 0 = as the pipeline says.
    progress: called with (stage name, share done 0..1). An exception in it ends the run and is raised here.
    """
    lines = [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
    target = "" if output is None else os.fspath(output)
    if isinstance(pipeline, Mapping):
        # JSON is YAML, so a dict goes through the very same checks as a file.
        text, name = json.dumps(pipeline, indent=1), "<dict>"
        report = _core.run_text(text, name, os.getcwd(), target, lines, threads, force, resume, progress)
    else:
        report = _core.run_file(os.fspath(pipeline), target, lines, threads, force, resume, progress)
    return json.loads(report)
