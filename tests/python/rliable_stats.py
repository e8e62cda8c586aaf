"""Computes a report's statistics with the real rliable, from the same score rows, and compares.

    python rliable_stats.py DIR REPORT.json

DIR is a sweep's folder, REPORT.json what `windvane report DIR --json` printed.
"""

import json
import sys
from pathlib import Path

import numpy as np
from rliable import library, metrics

folder, report = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
rows = [json.loads(line) for file in sorted(folder.glob("main/*/*/scores.jsonl")) for line in file.read_text().splitlines()]


def scores(method, belief, split):
    """Success of one method, [seeds, tasks]."""
    own = [r for r in rows if (r["method"], r["belief"], r["split"]) == (method, belief, split)]
    seeds, tasks = sorted({r["seed"] for r in own}), sorted({r["task"] for r in own})
    mean = lambda seed, task: np.mean([r["success"] for r in own if (r["seed"], r["task"]) == (seed, task)])
    return np.array([[mean(seed, task) for task in tasks] for seed in seeds])


def near(ours, theirs, tolerance, what):
    assert abs(ours - theirs) <= tolerance, f"{what}: {ours} here, {theirs} there"


np.random.seed(0)
compared = 0
for statistics in report["main"]:
    unseen = {}
    for line in statistics["lines"]:
        for column, cell in zip(statistics["columns"], line["cells"]):
            if cell is None or line["seeds"] < 2:
                continue
            x = scores(line["method"], *column.split())
            what = f"{line['method']}, {column}"
            near(cell["mean"], x.mean(), 1e-9, f"mean of {what}")
            near(cell["std"], x.mean(axis=1).std(ddof=1), 1e-9, f"deviation of {what}")
            near(cell["iqm"]["value"], metrics.aggregate_iqm(x), 1e-9, f"interquartile mean of {what}")
            for key, statistic in [("iqm", metrics.aggregate_iqm), ("interval", metrics.aggregate_mean)]:
                theirs = library.get_interval_estimates({"x": x}, lambda s: np.array([statistic(s)]), reps=4000)[1]["x"]
                spread = max(theirs[1][0] - theirs[0][0], 1e-9)
                near(cell[key]["low"], theirs[0][0], 0.12 * spread + 1e-9, f"lower end of the {key} of {what}")
                near(cell[key]["high"], theirs[1][0], 0.12 * spread + 1e-9, f"upper end of the {key} of {what}")
            compared += 1
            if column == "frozen test":
                unseen[line["method"]] = x
    for pair in statistics["improvements"]:
        x, y = unseen[pair["x"]], unseen[pair["y"]]
        theirs = metrics.probability_of_improvement(x, y)
        near(pair["probability"]["value"], theirs, 1e-9, f"improvement of {pair['x']} over {pair['y']}")
        draws = library.get_interval_estimates(
            {"x": (x, y)}, lambda a, b: np.array([metrics.probability_of_improvement(a, b)]), reps=2000
        )[1]["x"]
        for end, name in [(0, "low"), (1, "high")]:
            near(pair["probability"][name], draws[end][0], 0.04, f"{name} end of the improvement of {pair['x']} over {pair['y']}")
        compared += 1
    taus = np.array(statistics["thresholds"])
    for method, shares in statistics["profiles"]:
        theirs, _ = library.create_performance_profile({"x": unseen[method]}, taus, reps=10)
        assert np.allclose(theirs["x"], shares), f"profile of {method}: {shares} here, {theirs['x']} there"
        compared += 1
assert compared > 10, compared
print(f"{compared} statistics agree")
