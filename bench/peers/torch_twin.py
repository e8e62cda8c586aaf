"""The measured steps in PyTorch: its own kernels for what `losses` asks for, its fused Adam, its autograd."""

import os

import twin

ARGS = twin.arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)

import losses  # noqa: E402
import torch  # noqa: E402  (reads the number of threads when it is loaded)
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(ARGS.threads)


class Ops:
    """What `losses` needs."""

    tanh, sigmoid, relu, exp, log, sqrt = torch.tanh, torch.sigmoid, torch.relu, torch.exp, torch.log, torch.sqrt
    asinh, where, no_grad, cat, stack = torch.asinh, torch.where, torch.no_grad, torch.cat, torch.stack
    gelu, softmax, log_softmax, softplus = F.gelu, F.softmax, F.log_softmax, F.softplus
    zeros, arange, permute, diagonal = torch.zeros, torch.arange, torch.permute, torch.diagonal

    @staticmethod
    def linear(x, w, b):
        return torch.addmm(b, x, w) if x.dim() == 2 else x @ w + b

    @staticmethod
    def layer_norm(x, gain, shift):
        return F.layer_norm(x, gain.shape[1:], gain[0], shift[0])

    @staticmethod
    def attention(q, k, v, bias):
        mask = None if isinstance(bias, float) else bias
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    @staticmethod
    def float(x):
        return x.float()

    @staticmethod
    def stop(x):
        return x.detach()

    @staticmethod
    def amin(x, axis):
        return x.amin(axis, keepdim=True)

    @staticmethod
    def amax(x, axis):
        return x.amax(axis)

    @staticmethod
    def expand(x, width):
        return x.expand(-1, width)

    @staticmethod
    def each(x, times):
        return x.repeat_interleave(times, dim=0)

    @staticmethod
    def spread(x, times):
        return x.repeat_interleave(times, dim=1)

    @staticmethod
    def one_hot(index, count):
        return F.one_hot(index, count).float()

    @staticmethod
    def marks(size, places):
        flat = torch.zeros(size)
        flat[places] = 1.0
        return flat

    @staticmethod
    def add_at(size, columns, values):
        return torch.zeros(len(values), size).index_add_(1, columns, values)


class Optimiser:
    """Adam, and Muon for the matrices that it takes; the gradient is clipped as a whole."""

    def __init__(self, params, rate, clip, fb=None):
        self.params, self.rate, self.clip, self.fb = params, rate, clip, fb
        large = {name for name, x in params.items() if fb and twin.muon(name, x.shape, fb)}
        self.large = [params[name] for name in sorted(large)]
        self.memory = [torch.zeros_like(x) for x in self.large]
        rest = [x for name, x in params.items() if name not in large]
        # The fused optimiser is PyTorch's fastest on a CPU.
        self.adam = torch.optim.Adam(rest, lr=rate, betas=(twin.BETA1, twin.BETA2), eps=twin.EPSILON, fused=True)

    def step(self, loss, scale):
        everything = list(self.params.values())
        grads = torch.autograd.grad(loss, everything, allow_unused=True)
        for x, grad in zip(everything, grads):
            x.grad = grad
        torch.nn.utils.clip_grad_norm_(everything, self.clip)
        self.adam.param_groups[0]["lr"] = self.rate * scale
        self.adam.step()
        with torch.no_grad():
            for x, memory in zip(self.large, self.memory):
                memory.mul_(twin.MOMENTUM).add_(x.grad)
                rate = self.fb.muon_rate * scale
                stretch = max(1.0, x.shape[1] / x.shape[0]) ** 0.5
                x.mul_(1 - rate * twin.DECAY).sub_(orthogonal(x.grad + twin.MOMENTUM * memory), alpha=rate * stretch)


def orthogonal(x):
    tall = x.shape[0] > x.shape[1]
    x = x / (x.norm() + 1e-7)
    x = x.T if tall else x
    linear, cubic, quintic = twin.FACTORS
    for _ in range(twin.ITERATIONS):
        a = x @ x.T
        x = linear * x + (cubic * a + quintic * a @ a) @ x
    return x.T if tall else x


def tensors(arrays):
    return {name: torch.from_numpy(x) for name, x in arrays.items()}


def trained(arrays):
    return {name: torch.from_numpy(x).requires_grad_() for name, x in arrays.items()}


def copies(params):
    return {name: x.detach().clone() for name, x in params.items()}


def follow(target, params, tau):
    with torch.no_grad():
        torch._foreach_lerp_(list(target.values()), list(params.values()), tau)


def belief(case, constants, loss):
    params = trained(case.params["belief"])
    optimiser = Optimiser(params, case.belief.rate, 1.0)
    loss = compiled(loss)

    def step(batch, scale):
        value = loss(Ops, params, constants, batch, case)
        optimiser.step(value, scale)
        return value.item()

    return step


def discrete(case, constants, loss):
    params = trained(case.params["fb"])
    target = copies(params)
    optimiser = Optimiser(params, case.fb.rate, case.fb.clip, case.fb)
    loss = compiled(loss)

    def step(batch, scale):
        value = loss(Ops, params, target, constants, batch, case)
        optimiser.step(value, scale)
        follow(target, params, case.fb.tau)
        return value.item()

    return step


def continuous(case, constants):
    params, actor = trained(case.params["fb"]), trained(case.params["actor"])
    target = copies(params)
    optimiser = Optimiser(params, case.fb.rate, case.fb.clip)
    actor_optimiser = Optimiser(actor, case.actor.rate, 1.0)
    loss, actor_loss = compiled(losses.fb_actor), compiled(losses.actor_loss)

    def step(batch, scale):
        value, states = loss(Ops, params, target, actor, constants, batch, case)
        optimiser.step(value, scale)
        follow(target, params, case.fb.tau)
        # F is a constant here: only the actor's gradients are computed.
        frozen = {name: x.detach() for name, x in params.items()}
        actor_value = actor_loss(Ops, actor, frozen, states, case)
        actor_optimiser.step(actor_value, scale)
        return value.item() - actor_value.item()

    return step


def acting(case):
    actor, s, told = tensors(case.params["actor"]), *(torch.from_numpy(case.data[name]) for name in ("s", "task"))
    forward = compiled(lambda: losses.act(Ops, actor, s, told).sum())

    def step():
        with torch.inference_mode():
            return forward().item()

    return step


def compiled(function):
    return torch.compile(function) if ARGS.compile else function


def main():
    case = twin.read(ARGS.file, ARGS.step)
    if ARGS.step == "act":
        return twin.serve(acting(case), [()])
    constants = tensors(case.constants | case.data)
    if "index" in constants:
        constants["index"] = constants["index"][:, 0].long()
    step = {
        "belief-listed": lambda: belief(case, constants, losses.belief_listed),
        "belief-transitions": lambda: belief(case, constants, losses.belief_transitions),
        "fb-listed": lambda: discrete(case, constants, losses.fb_listed),
        "fb-heads": lambda: discrete(case, constants, losses.fb_heads),
        "fb-actor": lambda: continuous(case, constants),
    }[ARGS.step]()
    return twin.serve(step, list(zip(map(tensors, case.batches), case.scales)))


if __name__ == "__main__":
    main()
