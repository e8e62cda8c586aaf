"""The measured steps in PyTorch: the same networks, losses and optimiser, written as one writes PyTorch."""

import os

import twin

ARGS = twin.arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)

import torch  # noqa: E402  (reads the number of threads when it is loaded)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(ARGS.threads)


class Mlp(nn.Module):
    """LayerNorm and Tanh after the first layer, GELU after the others."""

    def __init__(self, params, name):
        super().__init__()
        count = sum(1 for key in params if key.startswith(name + "/") and key.endswith("/w"))
        self.layers = nn.ModuleList(linear(params, f"{name}/{i}") for i in range(count))
        self.norm = norm(params, f"{name}/norm")

    def forward(self, *parts):
        x = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        x = torch.tanh(self.norm(self.layers[0](x)))
        for layer in self.layers[1:-1]:
            x = F.gelu(layer(x))
        return self.layers[-1](x)


class Pair(nn.Module):
    def __init__(self, params, name):
        super().__init__()
        self.left, self.right, self.trunk = (Mlp(params, f"{name}/{part}") for part in ("left", "right", "trunk"))

    def forward(self, left, right):
        return self.trunk(self.left(*left), self.right(*right))


class Heads(nn.Module):
    """One head per action."""

    def __init__(self, params, name):
        super().__init__()
        self.pair = Pair(params, name)

    def forward(self, s, z):
        return self.pair((s,), (s, z)).view(len(s), twin.ACTION, -1)


class Block(nn.Module):
    def __init__(self, params, name):
        super().__init__()
        self.norm1, self.norm2 = norm(params, f"{name}/norm1"), norm(params, f"{name}/norm2")
        self.qkv, self.mix = linear(params, f"{name}/qkv"), linear(params, f"{name}/mix")
        self.up, self.down = linear(params, f"{name}/up"), linear(params, f"{name}/down")

    def forward(self, x):
        sets, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(sets, tokens, 3, twin.HEADS, width // twin.HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(sets, tokens, width)
        x = x + self.mix(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.embed, self.norm = linear(params, "encoder/embed"), norm(params, "encoder/norm")
        self.blocks = nn.ModuleList(Block(params, f"encoder/block{i}") for i in range(twin.BLOCKS))
        self.head, self.predictor = linear(params, "head"), Mlp(params, "predictor")

    def forward(self, tokens, states, noise):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        mean, log_std = self.head(self.norm(x).mean(dim=1)).chunk(2, dim=1)
        h = mean + log_std.exp() * noise
        return self.predictor(states, h.repeat_interleave(tokens.shape[1], dim=0)), mean, log_std


def linear(params, name):
    layer = nn.Linear(*params[f"{name}/w"].shape)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(params[f"{name}/w"]).T)
        layer.bias.copy_(torch.from_numpy(params[f"{name}/b"][0]))
    return layer


def norm(params, name):
    layer = nn.LayerNorm(params[f"{name}/gain"].shape[1])
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(params[f"{name}/gain"][0]))
        layer.bias.copy_(torch.from_numpy(params[f"{name}/shift"][0]))
    return layer


def adam(parameters):
    # The fused optimiser is PyTorch's fastest on a CPU.
    return torch.optim.Adam(parameters, lr=twin.RATE, fused=True)


def follow(target, online):
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), twin.TAU)


def project(b):
    return F.normalize(b, dim=1) * b.shape[1] ** 0.5


def fb_loss(fs, b, target_f, target_b):
    n = len(b)
    target = twin.DISCOUNT * (target_f @ target_b.T)
    off = 1 - torch.eye(n)
    loss = 0
    for f in fs:
        m = f @ b.T
        loss = loss + 0.5 * ((m - target) * off).square().sum() / (n * (n - 1)) - m.diagonal().mean()
    gram = b @ b.T
    return loss + 0.5 * (gram * off).square().sum() / (n * (n - 1)) - gram.diagonal().mean()


def discrete(params, batch):
    nets = nn.ModuleDict({"f0": Heads(params, "f0"), "f1": Heads(params, "f1"), "b": Mlp(params, "b")})
    target = nn.ModuleDict({"f0": Heads(params, "f0"), "f1": Heads(params, "f1"), "b": Mlp(params, "b")})
    s, after, z = (torch.from_numpy(x) for x in (batch["s"], batch["next"], twin.sphere(batch["z"])))
    rows, a = torch.arange(len(s)), torch.from_numpy(batch["a"][:, 0]).long()
    optimiser = adam(nets.parameters())

    def loss():
        with torch.no_grad():
            mean = 0.5 * (target["f0"](after, z) + target["f1"](after, z))
            greedy = (mean * z[:, None]).sum(dim=2).argmax(dim=1)
            target_f, target_b = mean[rows, greedy], project(target["b"](after))
        fs = [nets[name](s, z)[rows, a] for name in ("f0", "f1")]
        return fb_loss(fs, project(nets["b"](after)), target_f, target_b)

    loss = compiled(loss)

    def step():
        value = loss()
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        follow(target, nets)
        return value.item()

    return step


def continuous(params, batch):
    nets = nn.ModuleDict({"f0": Pair(params, "f0"), "f1": Pair(params, "f1"), "b": Mlp(params, "b")})
    target = nn.ModuleDict({"f0": Pair(params, "f0"), "f1": Pair(params, "f1"), "b": Mlp(params, "b")})
    actor = Pair(params, "actor")
    s, a, after, noise = (torch.from_numpy(batch[name]) for name in ("s", "a", "next", "noise"))
    z, noise = torch.from_numpy(twin.sphere(batch["z"])), noise * 0.3
    optimiser, actor_optimiser = adam(nets.parameters()), adam(actor.parameters())
    actor_parameters = list(actor.parameters())

    def fb():
        with torch.no_grad():
            next_a = (torch.tanh(actor((after,), (after, z))) + noise).clamp(-1, 1)
            target_f = 0.5 * sum(target[name]((after, next_a), (after, z)) for name in ("f0", "f1"))
            target_b = project(target["b"](after))
        fs = [nets[name]((s, a), (s, z)) for name in ("f0", "f1")]
        return fb_loss(fs, project(nets["b"](after)), target_f, target_b)

    def act():
        action = torch.tanh(actor((s,), (s, z)))
        q = sum((nets[name]((s, action), (s, z)) * z).sum(dim=1) for name in ("f0", "f1"))
        return -0.5 * q.mean()

    fb, act = compiled(fb), compiled(act)

    def step():
        value = fb()
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        follow(target, nets)
        actor_value = act()
        # Only the actor's gradients: F is a constant here.
        grads = torch.autograd.grad(actor_value, actor_parameters)
        for parameter, grad in zip(actor_parameters, grads):
            parameter.grad = grad
        actor_optimiser.step()
        return value.item() + actor_value.item()

    return step


def belief(params, batch):
    net = Encoder(params)
    flat, noise = torch.from_numpy(batch["tokens"]), torch.from_numpy(batch["noise"])
    tokens = flat.view(twin.WINDOWS, twin.TOKENS, -1)
    states = flat[:, : twin.OBS + twin.ACTION]
    change = flat[:, twin.OBS + twin.ACTION :] - flat[:, : twin.OBS]
    optimiser = adam(net.parameters())

    def loss():
        predicted, mean, log_std = net(tokens, states, noise)
        kl = 0.5 * (mean.square() + (2 * log_std).exp() - 2 * log_std - 1).sum() / twin.WINDOWS
        return (predicted - change).square().mean() + twin.KL * kl

    loss = compiled(loss)

    def step():
        value = loss()
        optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        return value.item()

    return step


def act(params, batch):
    actor = Pair(params, "actor")
    s, z = torch.from_numpy(batch["s"]), torch.from_numpy(twin.sphere(batch["z"]))
    forward = compiled(lambda: torch.tanh(actor((s,), (s, z))).sum())

    def step():
        with torch.inference_mode():
            return forward().item()

    return step


def compiled(function):
    return torch.compile(function) if ARGS.compile else function


if __name__ == "__main__":
    PARAMS, BATCH = twin.read(ARGS.file)
    STEPS = {"fb-discrete": discrete, "fb-continuous": continuous, "belief": belief, "act": act}
    twin.serve(STEPS[ARGS.step](twin.joined(PARAMS), BATCH))
