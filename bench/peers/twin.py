"""What the twins share: the file of weights, constants and batches, and the conversation with `windvane bench`.

A twin is started with the step, the number of threads and a file. The file holds what our own step was built from and
everything that it uploads for the first few batches, in order. The twin takes three steps and reports their losses, so that
they can be compared before anything is timed. Then it answers each line `run N` with the CPU and wall time of N steps, and an
empty line with its peak memory.
"""

import argparse
import itertools
import json
import math
import resource
import struct
import sys
import time
from types import SimpleNamespace

import numpy as np

STEPS = ["belief-listed", "belief-transitions", "fb-listed", "fb-heads", "fb-actor", "act"]
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
MOMENTUM, DECAY, ITERATIONS, FACTORS = 0.95, 0.05, 5, (3.4445, -4.7750, 2.0315)
# Matrices that Muon leaves to Adam, and the shortest side of those that it takes.
ADAM_ONLY, SHORTEST = ("b/", "f/tokens/embed", "f/out"), 32


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", required=True, choices=STEPS)
    parser.add_argument("--file", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def read(path, step):
    """The case: parameters by store, constants, data columns, batches and settings."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    words = json.loads(header.pop("__metadata__")["windvane"])
    tree = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], dtype=np.float32).reshape(entry["shape"]).copy()
        kind, _, rest = name.partition("/")
        tree.setdefault(kind, {})[rest] = array
    params = {}
    for name, array in joined(tree["params"]).items():
        store, _, rest = name.partition("/")
        params.setdefault(store, {})[rest] = array
    belief, fb, actor, _ = json.loads(words["settings"])
    listed = {word: int(words[word]) for word in ("states", "actions", "width") if word in words}
    uploads = {}
    for name, array in tree.get("batch", {}).items():
        batch, _, place = name.partition("/")
        uploads.setdefault(int(batch), {})[int(place)] = array
    uploads = [[batch[i] for i in range(len(batch))] for _, batch in sorted(uploads.items())]
    constants = [array for _, array in sorted(tree.get("constant", {}).items(), key=lambda item: int(item[0]))]
    case = SimpleNamespace(
        params=params,
        data=tree.get("data", {}),
        belief=SimpleNamespace(**belief),
        fb=SimpleNamespace(**fb),
        actor=SimpleNamespace(**actor),
        scales=[float(scale) for scale in tree["scales"][""][:, 0]],
        **listed,
    )
    if step == "act":
        return case
    case.batches = [NAMES[step](case, batch) for batch in uploads]
    if step == "belief-listed":
        pad(case)
    case.constants = CONSTANTS[step](constants) if step in CONSTANTS else {}
    return case


def whole(array):
    """Row numbers."""
    return array[:, 0].astype(np.int64)


def names_observations(_, batch):
    is_goal, goals, random, _, rows, chosen, *noise = batch
    named = {"is_goal": is_goal, "goals": whole(goals), "random": random, "rows": whole(rows), "chosen": whole(chosen)}
    return named | ({"noise": noise[0]} if noise else {})


def names_listed(_, batch):
    chosen, is_goal, goals, random, *mixture = batch
    named = {"chosen": whole(chosen), "is_goal": is_goal, "goals": whole(goals), "random": random}
    return named | dict(zip(("rewards", "is_mixture"), mixture))


def names_transitions(_, batch):
    rows, _, contexts, shares, noise = batch
    return {"contexts": whole(contexts), "rows": whole(rows), "shares": shares, "noise": noise}


def names_evidence(case, batch):
    named, batch = {}, list(batch)
    for way in range(case.belief.context["ways"]):
        named[f"positions{way}"], named[f"bags{way}"] = whole(batch.pop(0)), whole(batch.pop(0))
        named[f"groups{way}"] = whole(batch.pop(0))
        if way:
            named[f"normals{way}"], named[f"offsets{way}"] = batch.pop(0), batch.pop(0)
    named["hidden"], named["noise"] = batch
    return named


NAMES = {
    "belief-listed": names_evidence,
    "belief-transitions": names_transitions,
    "fb-listed": names_listed,
    "fb-heads": names_observations,
    "fb-actor": names_observations,
}


def constants_evidence(constants):
    entered, blocked, places, leaves, mask, enters, kinds, signs, _, tokens, shares, coordinates, from_state = constants
    return {
        "places": places, "leaves": leaves, "mask": mask, "enters": whole(enters), "kinds": whole(kinds), "signs": signs,
        "tokens": whole(tokens), "shares": shares, "coordinates": coordinates, "from_state": whole(from_state),
        "entered": entered, "blocked": blocked,
    }  # fmt: skip


def constants_listed(constants):
    # Attention and the reward kernels upload the same displacements.
    displacements, *_, successors, edges, moves, incoming, has_incoming, dynamics = constants
    one_hot = np.eye(math.isqrt(len(displacements)), dtype=np.float32)
    return {
        "displacements": whole(displacements), "successors": whole(successors), "edges": whole(edges), "moves": moves,
        "incoming": whole(incoming), "has_incoming": has_incoming, "one_hot": one_hot, "dynamics": dynamics,
    }  # fmt: skip


CONSTANTS = {"belief-listed": constants_evidence, "fb-listed": constants_listed}


def pad(case):
    """Contexts of every length as batches of one shape, which JAX wants: what is added lands in a bag that nobody reads."""
    vocabulary = case.states * case.actions * case.width
    for way in range(case.belief.context["ways"]):
        longest = max(len(batch[f"positions{way}"]) for batch in case.batches)
        for batch in case.batches:
            missing = longest - len(batch[f"positions{way}"])
            batch[f"positions{way}"] = np.pad(batch[f"positions{way}"], (0, missing))
            batch[f"bags{way}"] = np.pad(
                batch[f"bags{way}"], (0, missing), constant_values=case.belief.batch * vocabulary
            )


def joined(params):
    """Weights of an input in two parts, joined as a network that concatenates its inputs holds them."""
    out = {}
    for name, array in params.items():
        if name.endswith("/w0"):
            out[name[:-1]] = np.concatenate([array, params[name[:-1] + "1"]])
        elif not name.endswith("/w1"):
            out[name] = array
    return out


def muon(name, shape, fb):
    """Whether Muon updates a matrix."""
    return fb.muon_rate > 0 and min(shape) >= SHORTEST and not name.startswith(ADAM_ONLY)


def serve(step, batches):
    """Answers `windvane bench` until it hangs up; `step` takes a batch."""
    around = itertools.cycle(batches)
    say({"losses": [float(step(*next(around))) for _ in range(3)]})
    for line in sys.stdin:
        word, _, count = line.strip().partition(" ")
        if word != "run":
            say({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
            continue
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(count)):
            step(*next(around))
        say({
            "cpu_ms": (time.process_time() - cpu) * 1e3 / int(count),
            "wall_ms": (time.perf_counter() - wall) * 1e3 / int(count),
        })


def say(answer):
    print(json.dumps(answer), flush=True)
