"""Windvane's vector environments for Stable-Baselines3.

>>> envs = SB3VecEnv(gymnasium.make_vec("windvane/FourRooms-v0", num_envs=64))
>>> PPO("MlpPolicy", envs).learn(10_000)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from windvane.envs import WindvaneVectorEnv


class SB3VecEnv(VecEnv):
    """A vector environment in the form that Stable-Baselines3 has for them."""

    def __init__(self, envs: WindvaneVectorEnv) -> None:
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._actions: Any = None

    def reset(self) -> Any:
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        obs, _ = self.envs.reset(seed=seeds)
        self._reset_seeds()
        return obs

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        obs, rewards, terminated, truncated, info = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        over = terminated | truncated
        for i in np.flatnonzero(over):
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return obs, rewards.astype(np.float32), over, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [getattr(self.envs, method_name)(*args, **kwargs) for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        images: Iterable[Any] = self.envs.render() or ()
        return list(images)
