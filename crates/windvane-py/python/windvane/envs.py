"""Windvane's worlds as Gymnasium environments.

>>> env = gymnasium.make("windvane/FourRooms-v0", context=17)
>>> envs = gymnasium.make_vec("windvane/FourRooms-v0", num_envs=256)
>>> envs.reset(seed=0)[0].shape
(256, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from windvane import _core

Obs = NDArray[np.float32]

#: Gymnasium's names of worlds that are not just their own in capitals.
_NAMES = {"doors": "RandomizedDoors"}

#: Worlds that only builds with the feature `mujoco` have. They are registered anyway: elsewhere, making one
#: raises an error that says how to get it.
_ON_MUJOCO = ("ant-wind", "ant-wind-contacts", "ant-wind-6", "ant-fault", "ant-fault-more", "ant-fault-rotated")


def _id(world: str) -> str:
    return "windvane/" + _NAMES.get(world, "".join(part.capitalize() for part in world.split("-"))) + "-v0"


def register() -> None:
    """Register every world there is; doing so again changes nothing."""
    here = [world for world, _ in _core.worlds()]
    for world in dict.fromkeys((*here, *_ON_MUJOCO)):
        if _id(world) not in gymnasium.registry:
            gymnasium.register(
                _id(world),
                entry_point="windvane.envs:WindvaneEnv",
                vector_entry_point="windvane.envs:WindvaneVectorEnv",
                max_episode_steps=_core.World(world).spec()["horizon"] if world in here else None,
                kwargs={"world": world},
            )


def _observation_space(spec: dict[str, Any]) -> Any:
    low, high = (np.array([dim[side] for dim in spec["observation"]], np.float32) for side in ("low", "high"))
    return spaces.Box(low, high, dtype=np.float32)


def _action_space(spec: dict[str, Any]) -> Any:
    action = spec["action"]
    if "discrete" in action:
        return spaces.Discrete(len(action["discrete"]["names"]))
    low, high = (np.array(action["continuous"][side], np.float32) for side in ("low", "high"))
    return spaces.Box(low, high, dtype=np.float32)


class _Family:
    """What a single environment and many have in common: a world and its contexts."""

    def __init__(self, world: str, seed: int, train: int | None, test: int | None) -> None:
        self.world = _core.World(world, seed, train, test)
        self.spec = self.world.spec()

    def contexts(self, split: str = "train") -> list[int]:
        return self.world.contexts(split)

    def privileged_description(self, context: int) -> dict[str, Any]:
        return self.world.describe(context)


class WindvaneEnv(gymnasium.Env[Obs, Any]):
    """One environment of a world.

    `context` fixes the hidden dynamics; without one, every reset draws one of `split`. `task` is the number or name of the
    reward (`tasks` lists them), or None for no reward at all. `start` is "random" or "fixed". `seed`, `train` and `test` say
    which contexts the world has. With `privileged=True`, and only then, `info["privileged_context"]` tells the context.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        world: str,
        context: int | None = None,
        *,
        split: str = "train",
        task: int | str | None = 0,
        start: str = "random",
        seed: int = 0,
        train: int | None = None,
        test: int | None = None,
        privileged: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self._family = _Family(world, seed, train, test)
        self._choices = self._family.contexts(split) if context is None else [int(context)]
        if not self._choices:
            raise ValueError(f"{world}: no {split} contexts")
        self._drawn = context is None
        self._how = (task, start, None, False)
        self._privileged = privileged
        self.observation_space = _observation_space(self._family.spec)
        self.action_space = _action_space(self._family.spec)
        self.render_mode = render_mode
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f'unknown render mode "{render_mode}"; known: rgb_array')
        width = len(self._family.spec["observation"])
        self._obs, self._last = np.zeros((1, width), np.float32), np.zeros((1, width), np.float32)
        self._reward, self._terminated, self._truncated = np.zeros(1), np.zeros(1, bool), np.zeros(1, bool)
        self._single: _core.Vector | None = None
        self._context = self._choices[0]
        self._make()

    def _make(self) -> None:
        task, start, limit, autoreset = self._how
        self._single = _core.Vector(self._family.world, [self._context], task, start, limit, autoreset)

    def contexts(self, split: str = "train") -> list[int]:
        """The contexts of a split, "train" or "test"."""
        return self._family.contexts(split)

    def tasks(self) -> list[str]:
        """The names of the tasks of the present context."""
        return [name for name, _ in self._family.world.tasks(self._context)]

    @property
    def privileged_context(self) -> int:
        """The present context: for evaluation, never for an agent."""
        return self._context

    def privileged_description(self) -> dict[str, Any]:
        """What makes the present context what it is: for people, never for an agent."""
        return self._family.privileged_description(self._context)

    def _info(self) -> dict[str, Any]:
        return {"privileged_context": self._context} if self._privileged else {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, dict[str, Any]]:
        super().reset(seed=seed)
        if self._drawn:
            context = self._choices[int(self.np_random.integers(len(self._choices)))]
            if context != self._context:
                self._context = context
                self._make()
        assert self._single is not None
        self._single.seed(0, int(self.np_random.integers(2**63)))
        self._single.reset([0], self._obs)
        return self._obs[0].copy(), self._info()

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        assert self._single is not None
        actions = np.asarray(action)[np.newaxis]
        self._single.step(actions, self._obs, self._reward, self._terminated, self._truncated, self._last)
        return self._obs[0].copy(), float(self._reward[0]), bool(self._terminated[0]), False, self._info()

    def render(self) -> Any:
        if self.render_mode is None:
            return None
        return self._family.world.render(self._context, self._obs[0])


class WindvaneVectorEnv(VectorEnv[Obs, Any, NDArray[Any]]):
    """Many environments, stepped in one call; those that are over begin anew within the step.

    Environment i plays context i of `contexts`, or of `split`, over and over from the start where there are fewer; `context`
    is one for all. The rest is as in `WindvaneEnv`. With `copy=False` results are the same arrays every step.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["rgb_array"],
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        world: str,
        num_envs: int = 1,
        context: int | None = None,
        *,
        contexts: Sequence[int] | None = None,
        split: str = "train",
        task: int | str | None = 0,
        start: str = "random",
        seed: int = 0,
        train: int | None = None,
        test: int | None = None,
        max_episode_steps: int | None = None,
        privileged: bool = False,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self._family = _Family(world, seed, train, test)
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}, expected at least 1")
        if contexts is None:
            contexts = self._family.contexts(split) if context is None else [context]
        if not contexts:
            raise ValueError(f"{world}: no {split} contexts")
        self._contexts = [int(contexts[i % len(contexts)]) for i in range(num_envs)]
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f'unknown render mode "{render_mode}"; known: rgb_array')
        self.render_mode = render_mode
        self.num_envs = num_envs
        self.single_observation_space = _observation_space(self._family.spec)
        self.single_action_space = _action_space(self._family.spec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._privileged, self._copy = privileged, copy
        self._all = list(range(num_envs))
        self._vector = _core.Vector(
            self._family.world, self._contexts, task, start, max_episode_steps, True
        )
        width = len(self._family.spec["observation"])
        self._obs = np.zeros((num_envs, width), np.float32)
        self._last = np.zeros((num_envs, width), np.float32)
        self._rewards = np.zeros(num_envs)
        self._terminated, self._truncated = np.zeros(num_envs, bool), np.zeros(num_envs, bool)
        self._seeded = False

    def contexts(self, split: str = "train") -> list[int]:
        """The contexts of a split, "train" or "test"."""
        return self._family.contexts(split)

    @property
    def privileged_contexts(self) -> list[int]:
        """The context of each environment: for evaluation, never for an agent."""
        return list(self._contexts)

    def _info(self) -> dict[str, Any]:
        return {"privileged_context": np.array(self._contexts)} if self._privileged else {}

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, dict[str, Any]]:
        if isinstance(seed, (int, np.integer)) or (seed is None and not self._seeded):
            super().reset(seed=None if seed is None else int(seed))
            first = int(self.np_random.integers(2**62)) if seed is None else int(seed)
            seed = [first + i for i in self._all]
        if seed is not None:
            if len(seed) != self.num_envs:
                raise ValueError(f"{len(seed)} seeds for {self.num_envs} environments")
            for i, one in enumerate(seed):
                if one is not None:
                    self._vector.seed(i, one)
        self._seeded = True
        mask = (options or {}).get("reset_mask")
        which = self._all if mask is None else [int(i) for i in np.flatnonzero(mask)]
        self._vector.reset(which, self._obs)
        return self._out(self._obs), self._info()

    def step(
        self, actions: Any
    ) -> tuple[Obs, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        any_over = self._vector.step(
            actions, self._obs, self._rewards, self._terminated, self._truncated, self._last
        )
        info = self._info()
        if any_over:
            over = self._terminated | self._truncated
            info |= {"final_obs": self._last.copy(), "_final_obs": over}
            info |= {"final_info": self._info(), "_final_info": over}
        out = self._out
        return out(self._obs), out(self._rewards), out(self._terminated), out(self._truncated), info

    def _out(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy() if self._copy else array

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        if self.render_mode is None:
            return None
        world = self._family.world
        return tuple(world.render(c, obs) for c, obs in zip(self._contexts, self._obs, strict=True))
