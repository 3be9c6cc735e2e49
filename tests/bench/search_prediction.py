"""How well the search predicts what it writes: random budgets over one scoring, predicted beside measured.

Usage: python tests/bench/search_prediction.py PIPELINE.yaml OUTPUT [--budgets 20] [--seed 0] [--threads 1] [--beside latency ...] [--set KEY=VALUE ...]
The pipeline needs the stages sensitivity, search, export and validate. One run scores; the others draw a budget of size,
and in turn one of latency or peak memory beside it, between what the smallest and the largest assignment of the first
run's front take. Layers are scored once: the runs share OUTPUT/.cache. Prints one line a budget, then for each figure
the median and the worst relative error, and Spearman's rank correlation of predicted and measured loss (KL).
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("CTK_COMPRESS", ROOT / "build/release/bin/compress")


def run(arguments, budget):
    words = [PROGRAM, "run", arguments.pipeline, "--output", arguments.output, "--threads", arguments.threads, "--json"]
    for change in [*arguments.set, "budget={" + ", ".join(f"{key}: {value}" for key, value in budget.items()) + "}"]:
        words += ["--set", change]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode == 4:   # the two budgets together were too tight
        return None
    if done.returncode != 0:
        raise SystemExit(done.stdout or done.stderr)
    return json.loads(done.stdout)


def draw(random_numbers, front, others):
    """Shares of the way from the least to the most that points of the front take."""
    def between(name, low, high):
        values = [row["cost"][name] for row in front]
        return min(values) + random_numbers.uniform(low, high) * (max(values) - min(values))

    budget = {"size": f"{between('size', 0.02, 0.9):.0f} B"}
    for name in others:
        budget[name] = f"{between(name, 0.3, 1.0):.1f} us" if name == "latency" else f"{between(name, 0.3, 1.0):.0f} B"
    return budget


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    for rank, index in enumerate(order):
        found[index] = rank
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pipeline", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--budgets", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--beside", nargs="*", default=["latency", "peak_memory"], choices=["latency", "peak_memory"],
                        help="budgets to draw beside size; none where samples of calibrate and evaluate differ in length")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    random_numbers = random.Random(arguments.seed)
    first = run(arguments, {"latency": "1000 s"} if arguments.beside else {"size": "100 %"})
    if first is None:
        raise SystemExit("expected a first run without limits to end, found one that could not: see its output folder")
    front = first["search"]["front"]
    rows = []
    for number in range(arguments.budgets):
        turn = number % (len(arguments.beside) + 1)
        budget = draw(random_numbers, front, arguments.beside[turn - 1:turn] if turn else [])
        report = run(arguments, budget)
        if report is None:
            print(budget, "cannot be met", flush=True)
            continue
        rows.append({row["name"]: row for row in report["budget"]})
        told = {name: (row["predicted"], row["measured"]) for name, row in rows[-1].items() if row["predicted"] is not None}
        print(budget, told, flush=True)
    for name in ("size", "bits", "latency", "peak_memory"):
        errors = [abs(row[name]["error"]) for row in rows if name in row and row[name]["error"] is not None]
        if errors:
            print(f"{name:12s} {len(errors)} budgets: error median {statistics.median(errors):.2%}, worst {max(errors):.2%}")
    losses = [(row["loss"]["predicted"], row["loss"]["measured"]) for row in rows]
    predicted, measured = (ranks([pair[side] for pair in losses]) for side in (0, 1))
    print(f"loss         rank correlation {statistics.correlation(predicted, measured):.3f}, "
          f"measured / predicted median {statistics.median(b / a for a, b in losses):.2f}")


if __name__ == "__main__":
    main()
