"""What choosing by measured time saves over choosing by bits, at equal loss.

Usage: python tests/bench/bits_or_time.py PIPELINE.yaml OUTPUT [--threads 1] [--points 4] [--rounds 5] [--schemes a,b,c]
The pipeline needs the stages calibrate, sensitivity and search. One run scores and times. For losses between the least
and the most on its front, the programme is solved twice from the files: the fewest average bits within the loss, and the
least time within it. Both assignments are coded and their bundles timed by `compress bench` in turn (median of the
rounds' medians). A line each: the loss allowed, bits, time predicted and measured, metric and KL of the test split.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("CTK_COMPRESS", ROOT / "build/release/bin/compress")


def call(*words):
    done = subprocess.run([str(word) for word in (PROGRAM, *words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def run(pipeline, folder, threads):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump({**pipeline, "output": "out"}, sort_keys=False))
    return json.loads(call("run", path, "--threads", threads, "--json"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pipeline", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--schemes", help="instead of the pipeline's")
    arguments = parser.parse_args()
    pipeline = yaml.safe_load(arguments.pipeline.read_text())
    base = arguments.pipeline.parent.resolve()
    for place in (pipeline, *pipeline["data"].values()):
        for key in {"model", "path"} & place.keys():
            place[key] = str(base / place[key])
    stages = {name: stage[name] or {} for stage in pipeline["stages"] for name in stage}
    if arguments.schemes:
        stages["search"]["schemes"] = arguments.schemes.split(",")
    output = arguments.output.resolve()
    ends = [{"quantize": stages.get("quantize", {})}, {"export": {"formats": ["bundle"]}}, {"validate": {}}]
    scored = [{name: stages[name]} for name in ("calibrate", "sensitivity", "search")]
    first = run({**pipeline, "budget": {"latency": "1000 s"}, "stages": [*scored, *ends]}, output / "scored", arguments.threads)
    losses = sorted(point["loss"] for point in first["search"]["front"])
    least, most = max(losses[0], 1e-5), losses[-1]
    coded = {key: value for key, value in pipeline.items() if key != "budget"}
    coded["data"] = {key: value for key, value in pipeline["data"].items() if key != "score"}
    for point in range(arguments.points):
        loss = least * (most / least) ** ((point + 1) / (arguments.points + 1))
        found = {}
        for aim in ("bits", "latency"):
            answer = json.loads(call("search", "--from", output / "scored/out", "--minimize", aim, "--budget", f"loss={loss}", "--json"))
            folder = output / f"{aim}{point}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "assignment.json").write_text(json.dumps(answer["assignment"]))
            quantize = {**stages.get("quantize", {}), "assignment": "assignment.json"}
            report = run({**coded, "stages": [scored[0], {"quantize": quantize}, *ends[1:]]}, folder, arguments.threads)
            found[aim] = {"answer": answer, "report": report, "us": [], "bundle": next((folder / "out").glob("*.ctkb"))}
        for _ in range(arguments.rounds):
            for one in found.values():
                row = json.loads(call("bench", one["bundle"], "--threads", arguments.threads, "--seconds", 0.3, "--json").splitlines()[0])
                one["us"].append(row["med_us"])
        times = {aim: statistics.median(one["us"]) for aim, one in found.items()}
        line = {"loss": loss, "saved": 1 - times["latency"] / times["bits"]}
        for aim, one in found.items():
            predicted = {row["name"]: row["predicted"] for row in one["answer"]["budget"]}
            line[aim] = {"bits": predicted["bits"], "predicted_us": predicted["latency"], "measured_us": times[aim], "metric": one["report"]["metric"]["final"], "check": one["report"]["checks"][0]["result"]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
