"""The measured steps in JAX: one jitted function each, parameters as a dictionary, memory donated."""

import contextlib
import os

import twin

ARGS = twin.arguments()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if ARGS.threads > 1 else 'false'} intra_op_parallelism_threads={ARGS.threads}"
os.environ["NPROC"] = os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)
# XLA sizes its pool by the cores it may use.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: ARGS.threads])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import losses  # noqa: E402


class Ops:
    """What `losses` needs."""

    tanh, sigmoid, relu, exp, log, sqrt = jnp.tanh, jax.nn.sigmoid, jax.nn.relu, jnp.exp, jnp.log, jnp.sqrt
    asinh, where, cat, stack = jnp.arcsinh, jnp.where, jnp.concatenate, jnp.stack
    softmax, log_softmax, softplus = jax.nn.softmax, jax.nn.log_softmax, jax.nn.softplus
    zeros, arange, permute, diagonal = jnp.zeros, jnp.arange, jnp.transpose, jnp.diagonal
    no_grad = contextlib.nullcontext
    stop = jax.lax.stop_gradient

    @staticmethod
    def gelu(x):
        return jax.nn.gelu(x, approximate=False)

    @staticmethod
    def linear(x, w, b):
        return x @ w + b[0]

    @staticmethod
    def layer_norm(x, gain, shift):
        mean = x.mean(axis=-1, keepdims=True)
        variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * gain[0] + shift[0]

    @staticmethod
    def attention(q, k, v, bias):
        shares = jax.nn.softmax(q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5 + bias)
        return shares @ v

    @staticmethod
    def float(x):
        return x.astype(jnp.float32)

    @staticmethod
    def amin(x, axis):
        return x.min(axis=axis, keepdims=True)

    @staticmethod
    def amax(x, axis):
        return x.max(axis=axis)

    @staticmethod
    def expand(x, width):
        return jnp.broadcast_to(x, (len(x), width))

    @staticmethod
    def each(x, times):
        return jnp.repeat(x, times, axis=0)

    @staticmethod
    def spread(x, times):
        return jnp.repeat(x, times, axis=1)

    @staticmethod
    def one_hot(index, count):
        return jax.nn.one_hot(index, count)

    @staticmethod
    def marks(size, places):
        return jnp.zeros(size).at[places].set(1.0)

    @staticmethod
    def add_at(size, columns, values):
        return jnp.zeros((len(values), size)).at[:, columns].add(values)


def start(params):
    zeros = lambda: jax.tree.map(jnp.zeros_like, params)  # noqa: E731
    return {"params": params, "mean": zeros(), "square": zeros(), "steps": jnp.zeros(())}


def optimise(state, grads, rate, clip, scale, fb=None):
    """Adam, and Muon for the matrices that it takes; the gradient is clipped as a whole."""
    length = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(grads)))
    steps = state["steps"] + 1
    root = 1 / jnp.sqrt(1 - twin.BETA2**steps)
    out = {"params": {}, "mean": {}, "square": {}, "steps": steps}
    for name, value in state["params"].items():
        grad, mean, square = grads[name] * jnp.minimum(1, clip / length), state["mean"][name], state["square"][name]
        if fb and twin.muon(name, value.shape, fb):
            mean = twin.MOMENTUM * mean + grad
            muon = fb.muon_rate * scale
            stretch = max(1.0, value.shape[1] / value.shape[0]) ** 0.5
            value = value * (1 - muon * twin.DECAY) - muon * stretch * orthogonal(grad + twin.MOMENTUM * mean)
        else:
            mean = twin.BETA1 * mean + (1 - twin.BETA1) * grad
            square = twin.BETA2 * square + (1 - twin.BETA2) * grad * grad
            step = rate * scale / (1 - twin.BETA1**steps)
            value = value - step * mean / (jnp.sqrt(square) * root + twin.EPSILON)
        out["params"][name], out["mean"][name], out["square"][name] = value, mean, square
    return out


def orthogonal(x):
    tall = x.shape[0] > x.shape[1]
    x = x / (jnp.linalg.norm(x) + 1e-7)
    x = x.T if tall else x
    linear, cubic, quintic = twin.FACTORS
    for _ in range(twin.ITERATIONS):
        a = x @ x.T
        x = linear * x + (cubic * a + quintic * a @ a) @ x
    return x.T if tall else x


def follow(target, params, tau):
    return jax.tree.map(lambda t, p: t + tau * (p - t), target, params)


def looped(function, state, constants):
    """A step that keeps its state between calls."""
    jitted = jax.jit(function, donate_argnums=0)
    held = [state]

    def step(batch, scale):
        held[0], value = jitted(held[0], constants, batch, scale)
        return value.block_until_ready()

    return step


def belief(case, constants, loss):
    def function(state, constants, batch, scale):
        value, grads = jax.value_and_grad(lambda p: loss(Ops, p, constants, batch, case))(state["params"])
        return optimise(state, grads, case.belief.rate, 1.0, scale), value

    return looped(function, start(arrays(case.params["belief"])), constants)


def discrete(case, constants, loss):
    params = arrays(case.params["fb"])

    def function(state, constants, batch, scale):
        own, target = state
        value, grads = jax.value_and_grad(lambda p: loss(Ops, p, target, constants, batch, case))(own["params"])
        own = optimise(own, grads, case.fb.rate, case.fb.clip, scale, case.fb)
        return (own, follow(target, own["params"], case.fb.tau)), value

    return looped(function, (start(params), jax.tree.map(jnp.array, params)), constants)


def continuous(case, constants):
    params = arrays(case.params["fb"])

    def function(state, constants, batch, scale):
        own, target, actor = state
        fb = lambda p: losses.fb_actor(Ops, p, target, actor["params"], constants, batch, case)  # noqa: E731
        (value, states), grads = jax.value_and_grad(fb, has_aux=True)(own["params"])
        own = optimise(own, grads, case.fb.rate, case.fb.clip, scale)
        target = follow(target, own["params"], case.fb.tau)
        act = lambda p: losses.actor_loss(Ops, p, own["params"], states, case)  # noqa: E731
        actor_value, grads = jax.value_and_grad(act)(actor["params"])
        actor = optimise(actor, grads, case.actor.rate, 1.0, scale)
        return (own, target, actor), value - actor_value

    return looped(function, (start(params), jax.tree.map(jnp.array, params), start(arrays(case.params["actor"]))), constants)


def acting(case):
    actor, s, told = arrays(case.params["actor"]), jnp.array(case.data["s"]), jnp.array(case.data["task"])
    function = jax.jit(lambda p: losses.act(Ops, p, s, told).sum())
    return lambda: function(actor).block_until_ready()


def arrays(values):
    return {name: jnp.array(x) for name, x in values.items()}


def main():
    case = twin.read(ARGS.file, ARGS.step)
    if ARGS.step == "act":
        return twin.serve(acting(case), [()])
    constants = arrays(case.constants | case.data)
    if "index" in constants:
        constants["index"] = constants["index"][:, 0].astype("int32")
    step = {
        "belief-listed": lambda: belief(case, constants, losses.belief_listed),
        "belief-transitions": lambda: belief(case, constants, losses.belief_transitions),
        "fb-listed": lambda: discrete(case, constants, losses.fb_listed),
        "fb-heads": lambda: discrete(case, constants, losses.fb_heads),
        "fb-actor": lambda: continuous(case, constants),
    }[ARGS.step]()
    return twin.serve(step, list(zip(map(arrays, case.batches), case.scales)))


if __name__ == "__main__":
    main()
