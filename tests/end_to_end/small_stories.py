"""One search on stories260k with few samples, and its report."""

import json

import pytest
from conftest import DATA

STORIES = DATA / "stories260k"
needs_stories = pytest.mark.skipif(not STORIES.is_dir(), reason="CTK_DATA has no stories260k")
LINES = {"path": str(STORIES / "stories_calib_generated.txt"), "lines": True, "bos": True, "context": 128}


def run_stories(job, *, schemes, budget, search=None, quantize="gptq", metric="fisher", name="out"):
    config = {"model": str(STORIES), "output": name, "threads": 2, "budget": budget,
              "data": {"calibrate": {**LINES, "samples": 16}, "score": {**LINES, "skip": 16, "samples": 16}, "select": {**LINES, "skip": 32, "samples": 16},
                       "evaluate": {"path": str(STORIES / "tinystories_eval.txt"), "lines": True, "bos": True, "context": 128, "metric": "kl", "samples": 8}},
              "stages": [{"sensitivity": {"metric": metric}}, {"search": {"schemes": schemes, **(search or {})}}, {"quantize": {"method": quantize}},
                         {"export": {"formats": ["bundle"]}}, {"validate": {}}]}
    if quantize == "rtn":   # nothing is compared
        del config["data"]["select"]
    (job.folder / "pipeline.yaml").write_text(json.dumps(config))
    outcome = job.run()
    return outcome, job.folder / name


def report_of(folder):
    return json.loads((folder / "report.json").read_text())
