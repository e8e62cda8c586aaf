"""A training step before the two learners became one (revision a9e1fef) against one of now, by their own `train`, in turn.

    python3 bench/engine/revisions.py OLD_PROGRAM NEW_PROGRAM [CASE ..]

Each program trains at the same sizes until its log has enough rows; what a step costs is the CPU time between two of them.
Printed are the medians and ratios of every round. F on listed states is another algorithm now and is not compared.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3
DATA = {"data.episodes": 8}
SMALL_NETS = {"preprocessor": "[256, 256]", "embedding": 128, "trunk": "[256, 256]"}
CACHE = {"belief.cached": 64, "belief.width": 16, "belief.blocks": 1, "belief.batch": 2, "belief.steps": 1}
SMALL_BELIEF = {"belief.batch": 64, "belief.width": 96, "belief.steps": 100}
FB = {"fb.contexts": 512, "fb.steps": 100, "fb.dim": 100, "belief.dim": 100} | {
    f"fb.net.{name}": value for name, value in SMALL_NETS.items()
}
# Name: environment, preset, log, rows to wait for, settings.
CASES = {
    "belief-listed": ("four-rooms", "standard", "belief.jsonl", 60, {"belief.steps": 100}),
    "belief-transitions": ("four-rooms", "paper", "belief.jsonl", 8, SMALL_BELIEF),
    "fb-heads": ("four-rooms", "paper", "agent.jsonl", 18, CACHE | FB),
    "fb-actor": ("pointmass", "paper", "agent.jsonl", 18, CACHE | FB),
}
RENAMED = {"fb.contexts": "fb.groups", "belief.cached": "belief.cached"}


def old(name, listed):
    """A setting as the old revision calls it."""
    if name.startswith("data."):
        return name
    name = RENAMED.get(name, name).replace("fb.net.", "fb.")
    return name if listed else "neural." + name


def step_ms(program, is_old, case):
    env, preset, log, rows, settings = CASES[case]
    listed = preset == "standard"
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "train", "--env", env, "--preset", preset, "--method", "bfb", "--seed", "10", "--threads", "1"]
        command += ["--out", f"{folder}/run"]
        for name, value in (DATA | settings).items():
            command += ["--set", f"{old(name, listed) if is_old else name}={value}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        path = Path(folder) / "run" / log
        read = lambda: path.read_text().splitlines() if path.exists() else []  # noqa: E731
        while len(read()) < rows and process.poll() is None:
            time.sleep(0.2)
        process.kill()
        said = process.stderr.read()
        lines = [json.loads(line) for line in read()[:rows] if line.endswith("}")]
        if len(lines) < rows:
            sys.exit(f"{program} ended early: {said[-500:]}")
    at = [(line["step"], line["cpu_seconds"]) for line in lines if "step" in line]
    (first, began), (last, ended) = at[2], at[-1]  # the first steps warm up, and no evaluation comes that early
    return 1e3 * (ended - began) / (last - first)


def main():
    before, now, *cases = sys.argv[1:]
    for case in cases or CASES:
        pairs = [(step_ms(before, True, case), step_ms(now, False, case)) for _ in range(ROUNDS)]
        ratios = sorted(new / was for was, new in pairs)
        times = ", ".join(f"{was:.1f} -> {new:.1f}" for was, new in pairs)
        print(f"{case}: {times} ms; ratio {statistics.median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
