"""Searched networks beside uniform ones of the same bytes: is mixing worth it, and where?

Usage: python tests/bench/searched_front.py PIPELINE.yaml OUTPUT --uniform SCHEME ... [--between 1] [--threads 1] [--set KEY=VALUE ...]
The pipeline needs the stages sensitivity, search, quantize, export and validate. Each scheme is run for every layer it can
be used on; then the search gets as many bytes as each of those files has, and `--between` sizes evenly between each two.
Prints size, KL on data.evaluate of the searched network, that of the uniform one (between two: on the line through their
logarithms), and the share.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("CTK_COMPRESS", ROOT / "build/release/bin/compress")


def run(arguments, name, settings):
    words = [PROGRAM, "run", arguments.pipeline, "--output", arguments.output / name, "--threads", arguments.threads, "--json"]
    for change in [*arguments.set, *settings]:
        words += ["--set", change]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout or done.stderr)
    report = json.loads(done.stdout)
    kl = next(check["result"] for check in report["checks"] if check["against"] == "float").split()[1]
    return report["size"]["after"], float(kl)


def uniform_at(points, size):
    """KL at a size between two uniform points, on the line of log KL over size."""
    for (low, kl_low), (high, kl_high) in zip(points, points[1:]):
        if low <= size <= high:
            share = (size - low) / (high - low) if high > low else 0
            return math.exp((1 - share) * math.log(kl_low) + share * math.log(kl_high))
    return math.nan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pipeline", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--uniform", nargs="+", required=True)
    parser.add_argument("--between", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    points = []
    for scheme in arguments.uniform:   # a search with one choice: the same groups, embedding and head among them
        points.append(run(arguments, f"uniform_{scheme}", [f"stages.search.schemes=[{scheme}]", "budget={size: 100 %}"]))
        print(f"uniform {scheme}: {points[-1][0]:.0f} B, KL {points[-1][1]:.5f}", flush=True)
    points.sort()
    sizes = [points[0][0]]
    for (low, _), (high, _) in zip(points, points[1:]):
        sizes += [low + (high - low) * (k + 1) / (arguments.between + 1) for k in range(arguments.between)] + [high]
    for size in sizes:
        bytes_after, kl = run(arguments, "searched", [f"budget={{size: {size:.0f} B}}"])
        beside = uniform_at(points, size)
        print(f"searched within {size:.0f} B: {bytes_after:.0f} B, KL {kl:.5f}, uniform {beside:.5f}, share {kl / beside:.2f}", flush=True)


if __name__ == "__main__":
    main()
