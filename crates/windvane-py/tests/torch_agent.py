"""An exported agent on observations, written once more in PyTorch from its two files: what the tests compare Q with, and what the
benchmark races against."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

#: As in fb/networks.rs.
POSITIVE_OFFSET, NEGATIVE_OFFSET = 2.0, 5.0
#: As in data/encoder.rs.
FARTHEST = 3.0


class Agent(nn.Module):
    """F (through the predictor or not), B and the actor, under one belief and one task."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.config = json.loads((Path(folder) / "config.json").read_text())
        self.weights = {key: value.float() for key, value in load_file(Path(folder) / "model.safetensors").items()}
        self.fb = self.config["settings"]["fb"]
        self.codec = self.config["states"]["observations"]["codec"]
        self.dim = self.fb["dim"]
        card = self.config["conditioner"]
        self.scale = card["belief"]["scale"] if isinstance(card, dict) and "belief" in card else None
        self.through = self.fb["forward"] == "predictor"
        self.change_scale = torch.tensor(self.codec["change_scale"])
        encoder = self.codec["observations"]
        self.smooth = [dim["smooth"] for dim in encoder["dims"]]
        self.waves = torch.tensor(encoder["waves"]).reshape(-1, len(self.smooth) + 1)

    def linear(self, name: str, *parts: Tensor) -> Tensor:
        """A layer of one input part, or of several."""
        names = [f"{name}/w"] if len(parts) == 1 else [f"{name}/w{i}" for i in range(len(parts))]
        x = self.weights[f"{name}/b"]
        for key, part in zip(names, parts, strict=True):
            x = x + part @ self.weights[key]
        return x

    def mlp(self, name: str, *parts: Tensor) -> Tensor:
        """The paper's perceptron: LayerNorm and Tanh first, then GELU, linear output."""
        x = self.linear(f"{name}/0", *parts)
        gain, shift = self.weights[f"{name}/norm/gain"], self.weights[f"{name}/norm/shift"]
        x = torch.tanh(F.layer_norm(x, x.shape[-1:], gain.flatten(), shift.flatten()))
        layer = 1
        while f"{name}/{layer + 1}/w" in self.weights:
            x = F.gelu(self.linear(f"{name}/{layer}", x))
            layer += 1
        return self.linear(f"{name}/{layer}", x)

    def encode(self, obs: Tensor) -> Tensor:
        middle = torch.tensor([dim["middle"] for dim in self.smooth])
        scale = torch.tensor([dim["scale"] for dim in self.smooth])
        x = ((obs - middle) * scale).clamp(-FARTHEST, FARTHEST)
        if self.waves.numel() == 0:
            return x
        phase = x @ self.waves[:, :-1].T + self.waves[:, -1]
        return torch.cat([x, math.sqrt(2) * torch.cos(phase)], 1)

    def backward_map(self, s: Tensor) -> Tensor:
        return F.normalize(self.mlp("fb/b", s), dim=1) * math.sqrt(self.dim)

    def film(self, name: str, s: Tensor, a: Tensor | None, task: Tensor, z: Tensor) -> Tensor:
        product = self.backward_map(s) * z
        parts = [s] + ([] if a is None else [a]) + [0.5 * product, 3.0 / self.dim * product.sum(1, keepdim=True)]
        embedding = F.relu(self.linear(f"{name}/task/1", F.relu(self.linear(f"{name}/task/0", task))))
        gain, shift = self.linear(f"{name}/film", embedding).chunk(2, dim=1)
        x = F.relu(self.linear(f"{name}/state", torch.cat(parts, 1)) * (1 + gain) + shift)
        return self.linear(f"{name}/out", F.relu(self.linear(f"{name}/hidden", x)))

    def net(self, name: str, s: Tensor, a: Tensor | None, task: Tensor, z: Tensor) -> Tensor:
        if self.fb["net"]["kind"] == "film":
            return self.film(name, s, a, task, z)
        tasks = task.expand(len(s), -1)
        left = self.mlp(f"{name}/left", s) if a is None else self.mlp(f"{name}/left", s, a)
        return self.mlp(f"{name}/trunk", left, self.mlp(f"{name}/right", s, tasks))

    def after(self, obs: Tensor, s: Tensor, a: Tensor, h: Tensor | None) -> Tensor:
        name = "belief/blind" if h is None else "belief/g"
        belief = torch.zeros(1, self.weights[f"{name}/told/w"].shape[0]) if h is None else h
        act = self.mlp(f"{name}/act", torch.cat([s, a], 1))
        change = self.mlp(f"{name}/trunk", act * self.linear(f"{name}/told", belief), act)
        return obs + change * self.change_scale

    def value(self, raw: Tensor, z: Tensor) -> Tensor:
        along = (raw[:, : self.dim] * z).sum(1) / self.dim
        match self.fb["value_head"]:
            case "linear":
                return along
            case "skip":
                return along + raw[:, self.dim]
            case _:
                positive, negative = raw[:, self.dim] + POSITIVE_OFFSET, raw[:, self.dim + 1] + NEGATIVE_OFFSET
                return torch.sigmoid(-positive) - torch.sigmoid(-negative)

    def given(self, h: Any, z: Any) -> tuple[Tensor | None, Tensor, Tensor]:
        z = torch.as_tensor(z)[None]
        if self.scale is None:
            return None, z, z
        h = torch.as_tensor(h)[None]
        return h, torch.cat([(h - self.weights["conditioner/mean"]) * self.scale, z], 1), z

    def ensemble(self, s: Tensor, a: Tensor | None, task: Tensor, z: Tensor) -> Tensor:
        nets = range(self.fb["ensemble"])
        return torch.stack([self.value(self.net(f"fb/f{i}", s, a, task, z), z) for i in nets]).mean(0)

    @torch.inference_mode()
    def q(self, obs: Tensor, h: Any, z: Any, n_actions: int) -> Tensor:
        """Values of all discrete actions, `[rows, n]`."""
        h, task, z = self.given(h, z)
        s, values = self.encode(obs), []
        if self.through:
            for action in range(n_actions):
                a = F.one_hot(torch.full((len(obs),), action), n_actions).float()
                s_next = self.encode(self.after(obs, s, a, h))
                values.append(self.ensemble(s_next, None, task, z))
            return torch.stack(values, 1)
        width = self.dim + {"linear": 0, "skip": 1}.get(self.fb["value_head"], 2)
        raw = self.net("fb/f0", s, None, task, z).reshape(len(obs) * n_actions, width)
        return self.value(raw, z).reshape(len(obs), n_actions)

    @torch.inference_mode()
    def act(self, obs: Tensor, h: Any, z: Any) -> Tensor:
        """What the actor does, between -1 and 1."""
        _, task, z = self.given(h, z)
        return torch.tanh(self.net_of_actor(self.encode(obs), task, z))

    def net_of_actor(self, s: Tensor, task: Tensor, z: Tensor) -> Tensor:
        return self.net("actor/actor", s, None, task, z)

    @torch.inference_mode()
    def q_of(self, obs: Tensor, a: Tensor, h: Any, z: Any) -> Tensor:
        """Values of encoded vectors as actions, `[rows]`."""
        h, task, z = self.given(h, z)
        s = self.encode(obs)
        if self.through:
            return self.ensemble(self.encode(self.after(obs, s, a, h)), None, task, z)
        return self.ensemble(s, a, task, z)
