"""Data sets from environments: a behaviour policy acts, and what happens is recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from windvane import _core
from windvane._core import Dataset

if TYPE_CHECKING:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray

#: Environments that are stepped together.
_TOGETHER = 1024

#: Observations `[n, dims]` to actions `[n]` or `[n, k]`.
Policy = Callable[["NDArray[np.float32]"], Any]


def collect(
    env: str | gymnasium.Env[Any, Any] | Sequence[gymnasium.Env[Any, Any]],
    policy: str | Policy | None = None,
    *,
    episodes: int = 10,
    contexts: str | Sequence[int] = "train",
    length: int | None = None,
    start: str = "random",
    seed: int = 0,
    dims: list[str] | None = None,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Let a policy act and record what happens: `episodes` in each context.

    `env` is a world of Windvane's by its name, or Gymnasium environments: one, or a list of which each is a group with
    dynamics of its own. `policy` is a function from observations `[n, dims]` to as many actions (all environments are stepped
    together), or for worlds of Windvane's the name of one (`"uniform"`, `"sticky"`, ..), as `windvane collect` has it and with
    the same bytes. Without `out` the data set lives in a temporary folder until it is saved.

    >>> rng = np.random.default_rng(0)
    >>> windvane.collect("doors", lambda obs: rng.integers(4, size=len(obs)), episodes=2, contexts=[3, 5], length=50)
    Dataset(200 transitions in 4 episodes of 2 groups, doors)
    """
    if not (policy is None or isinstance(policy, str) or callable(policy)):
        raise ValueError(f"policy: {type(policy).__name__}, expected a function from observations to actions or a name")
    if isinstance(env, str):
        world = _core.World(env, seed)
        which = world.contexts(contexts) if isinstance(contexts, str) else [int(c) for c in contexts]
        steps = length if length is not None else world.spec()["horizon"]
        if policy is None or isinstance(policy, str):
            return Dataset._collect(world, which, policy, (episodes, steps), start, seed, out)
        return _in_world(world, which, policy, episodes, steps, start, seed, out)
    if policy is None or isinstance(policy, str):
        raise ValueError("policy: expected a function from observations to actions")
    envs: list[Any] = list(env) if isinstance(env, Sequence) else [env]
    if odd := [one for one in envs if not hasattr(one, "action_space")]:
        raise ValueError(f"env: {type(odd[0]).__name__}, expected the name of a world or Gymnasium environments")
    return _in_gymnasium(envs, policy, episodes, length, seed, dims, name, out)


def _in_world(
    world: _core.World,
    contexts: list[int],
    policy: Policy,
    episodes: int,
    length: int,
    start: str,
    seed: int,
    out: str | os.PathLike[str] | None,
) -> Dataset:
    import numpy as np

    if episodes < 1 or length < 1 or not contexts:
        raise ValueError("collect: expected at least one context, one episode and one step")
    if len(contexts) * episodes * length > 2**40:
        raise ValueError(f"{world.spec()['name']}: more than 2^40 transitions asked for")
    width = len(world.spec()["observation"])
    all_contexts: list[int] = np.repeat(np.array(contexts, np.uint64), episodes).tolist()
    seeds = np.random.SeedSequence(seed).generate_state(len(all_contexts), np.uint64)
    seen, taken, lengths, ended = [], [], [], []
    for first in range(0, len(all_contexts), _TOGETHER):
        part = all_contexts[first : first + _TOGETHER]
        n = len(part)
        vector = _core.Vector(world, part, None, start, None, False)
        for i in range(n):
            vector.seed(i, int(seeds[first + i]))
        obs = np.empty((length + 1, n, width), np.float32)
        actions: list[NDArray[Any]] = []
        over = np.full(n, length)
        terminated, truncated = np.zeros(n, bool), np.zeros(n, bool)
        rewards, last = np.zeros(n), np.zeros((n, width), np.float32)
        vector.reset(list(range(n)), obs[0])
        for step in range(length):
            action = np.asarray(policy(obs[step].copy()))
            vector.step(action, obs[step + 1], rewards, terminated, truncated, last)
            actions.append(action)
            over[terminated & (over == length)] = step + 1
        stacked = np.stack(actions)
        for i in range(n):
            seen.append(obs[: over[i] + 1, i])
            taken.append(stacked[: over[i], i])
            lengths.append(int(over[i]))
            ended.append(bool(over[i] < length or terminated[i]))
    called = getattr(policy, "__name__", type(policy).__name__)
    return Dataset._write(
        world, np.concatenate(seen), np.concatenate(taken), lengths, ended, all_contexts, called, seed, out
    )


def _in_gymnasium(
    envs: list[gymnasium.Env[Any, Any]],
    policy: Policy,
    episodes: int,
    length: int | None,
    seed: int,
    dims: list[str] | None,
    name: str | None,
    out: str | os.PathLike[str] | None,
) -> Dataset:
    import numpy as np

    from windvane._data import bounds

    if episodes < 1 or not envs:
        raise ValueError("collect: expected at least one environment and one episode")
    space: Any = envs[0].action_space
    whole = hasattr(space, "n")
    records: list[list[tuple[list[Any], list[Any], bool]]] = [[] for _ in envs]
    for round in range(episodes):
        obs = [
            np.asarray(env.reset(seed=seed * 1_000_003 + round * len(envs) + i)[0], np.float32)
            for i, env in enumerate(envs)
        ]
        walks: list[tuple[list[Any], list[Any], bool]] = [([first], [], False) for first in obs]
        running = list(range(len(envs)))
        while running:
            actions = np.asarray(policy(np.stack([walks[i][0][-1] for i in running])))
            if len(actions) != len(running):
                raise ValueError(f"policy: {len(actions)} actions for {len(running)} observations")
            left = []
            for i, action in zip(running, actions, strict=True):
                step = envs[i].step(int(action) if whole else action)
                seen, taken, _ = walks[i]
                seen.append(np.asarray(step[0], np.float32))
                taken.append(action)
                walks[i] = (seen, taken, bool(step[2]))
                if not (step[2] or step[3] or len(taken) == length):
                    left.append(i)
            running = left
        for i, walk in enumerate(walks):
            records[i].append(walk)
    flat = [walk for group in records for walk in group]
    low, high = bounds(space)
    spec = envs[0].spec
    return Dataset.from_numpy(
        np.concatenate([seen for seen, _, _ in flat]),
        np.concatenate([taken for _, taken, _ in flat]),
        episode_offsets=np.concatenate([[0], np.cumsum([len(taken) for _, taken, _ in flat])]),
        terminated=np.array([ended for _, _, ended in flat]),
        groups=np.repeat(np.arange(len(envs)), episodes),
        action_low=low,
        action_high=high,
        n_actions=int(space.n) if whole else None,
        dims=dims,
        name=name or (spec.id if spec is not None else "gymnasium"),
        out=out,
    )
