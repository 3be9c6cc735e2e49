"""What a busy neighbour on one core does to a network that runs on all of them: alone, and beside one spinning process.

Usage: python tests/bench/busy_neighbour.py MODEL.onnx [--threads 2] [--rounds 5] [--peer] [--size N]
Rounds take turns alone and beside, so that the machine's drift meets both. `--peer` measures ONNX Runtime in the same
rounds (`compress bench --against onnxruntime`). Prints medians over the rounds and their ratio; half of the speed is
what a fair scheduler leaves of the taken core's part, so on two cores at best 1.33 times as long is to be expected of a
network that splits perfectly, 2 of one that waits for the taken core at each step.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("CTK_COMPRESS", ROOT / "build/release/bin/compress")


def measure(arguments):
    words = [PROGRAM, "bench", arguments.model, "--threads", arguments.threads, "--seconds", 0.3]
    words += ["--against", "onnxruntime"] if arguments.peer else []
    words += ["--size", arguments.size] if arguments.size else []
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["peer"]: row["med_us"] for row in rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--size", type=int)
    arguments = parser.parse_args()
    alone, beside = [], []
    for _ in range(arguments.rounds):
        alone.append(measure(arguments))
        neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            beside.append(measure(arguments))
        finally:
            neighbour.kill()
            neighbour.wait()
    for peer in alone[0]:
        quiet, busy = (statistics.median(row[peer] for row in rows) for rows in (alone, beside))
        print(json.dumps({"peer": peer, "threads": arguments.threads, "alone_us": quiet, "beside_us": busy, "ratio": busy / quiet}))


if __name__ == "__main__":
    main()
