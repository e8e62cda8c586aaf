"""One run of two threads against two runs of one thread at the same time: steps per second of both ways, in turn.

    python3 bench/engine/threads.py target/debug/windvane
"""

import json
import subprocess
import sys
import time

ROUNDS, SECONDS = 6, 3.0


class Worker:
    def __init__(self, program, step, size, threads):
        command = [program, "bench", "--worker", "--step", step, "--size", size, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def tell(self, steps):
        print(f"run {steps}", file=self.process.stdin, flush=True)

    def answer(self):
        return json.loads(self.process.stdout.readline())


def rate(workers, steps):
    """Steps per second of all workers together."""
    start = time.perf_counter()
    for worker in workers:
        worker.tell(steps)
    for worker in workers:
        worker.answer()
    return steps * len(workers) / (time.perf_counter() - start)


def main():
    for step, size in [("fb-heads", "small"), ("belief-transitions", "small"), ("fb-heads", "paper")]:
        one, two = [Worker(sys.argv[1], step, size, 2)], [Worker(sys.argv[1], step, size, 1) for _ in range(2)]
        steps = max(1, int(SECONDS * rate(one, 2)))
        rates = [(rate(one, steps), rate(two, max(1, steps // 2))) for _ in range(ROUNDS)]
        best = [max(way) for way in zip(*rates)]
        print(f"{step} {size}: one run of two threads {best[0]:.2f} steps/s, two runs of one {best[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
