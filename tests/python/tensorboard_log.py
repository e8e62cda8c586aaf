"""Reads a training's event file with the real TensorBoard and compares it with the JSON log beside it.

    python tensorboard_log.py LOG.jsonl LOG.tensorboard
"""

import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
events = EventAccumulator(sys.argv[2], size_guidance={"scalars": 0})
events.Reload()

compared = 0
for tag in events.Tags()["scalars"]:
    name = tag.split("/")[-1]
    for event in events.Scalars(tag):
        values = [row[name] for row in rows if row["step"] == event.step and name in row]
        assert any(abs(value - event.value) <= 1e-6 * max(1.0, abs(value)) for value in values), (tag, event, values)
        compared += 1
assert compared > 10, f"only {compared} numbers in {events.Tags()}"
print(f"{compared} numbers agree")
