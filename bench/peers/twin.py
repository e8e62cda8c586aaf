"""What the twins share: the file of weights and batch, and the conversation with `windvane bench`.

A twin is started with the step, its size, the number of threads and a file. It takes three steps from the file's weights
and reports their losses, so that they can be compared before anything is timed. Then it answers each line `run N` with the
CPU and wall time of N steps, and an empty line with its peak memory.
"""

import argparse
import json
import resource
import struct
import sys
import time

import numpy as np

OBS, ACTION = 16, 4
DISCOUNT, TAU, RATE = 0.98, 0.05, 1e-4
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
WINDOWS, TOKENS, WIDTH, HEADS, BLOCKS, KL = 64, 100, 96, 4, 4, 1e-5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", required=True, choices=["fb-discrete", "fb-continuous", "belief", "act"])
    parser.add_argument("--file", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def read(path):
    """The tensors of a safetensors file, by name: parameters and batch."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    params, batch = {}, {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], dtype=np.float32).reshape(entry["shape"]).copy()
        kind, rest = name.split("/", 1)
        {"params": params, "batch": batch}[kind][rest] = array
    return params, batch


def joined(params):
    """Weights of an input in two parts, joined as a network that concatenates its inputs holds them."""
    out = {}
    for name, array in params.items():
        if name.endswith("/w0"):
            out[name[:-1]] = np.concatenate([array, params[name[:-1] + "1"]])
        elif not name.endswith("/w1"):
            out[name] = array
    return out


def sphere(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True) * np.sqrt(np.float32(x.shape[1]))


def serve(step):
    """Answers `windvane bench` until it hangs up."""
    say({"losses": [float(step()) for _ in range(3)]})
    for line in sys.stdin:
        word, _, count = line.strip().partition(" ")
        if word != "run":
            say({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
            continue
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(count)):
            step()
        say({
            "cpu_ms": (time.process_time() - cpu) * 1e3 / int(count),
            "wall_ms": (time.perf_counter() - wall) * 1e3 / int(count),
        })


def say(answer):
    print(json.dumps(answer), flush=True)
