"""The measured steps in JAX: one jitted function each, parameters as a dictionary, memory donated."""

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


def norm(p, name, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * p[f"{name}/gain"][0] + p[f"{name}/shift"][0]


def linear(p, name, x):
    return x @ p[f"{name}/w"] + p[f"{name}/b"][0]


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def mlp(p, name, *parts):
    x = jnp.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
    count = sum(1 for key in p if key.startswith(name + "/") and key.endswith("/w"))
    x = jnp.tanh(norm(p, f"{name}/norm", linear(p, f"{name}/0", x)))
    for i in range(1, count - 1):
        x = gelu(linear(p, f"{name}/{i}", x))
    return linear(p, f"{name}/{count - 1}", x)


def pair(p, name, left, right):
    return mlp(p, f"{name}/trunk", mlp(p, f"{name}/left", *left), mlp(p, f"{name}/right", *right))


def heads(p, name, s, z):
    return pair(p, name, (s,), (s, z)).reshape(len(s), twin.ACTION, -1)


def backward(p, s):
    b = mlp(p, "b", s)
    return b / jnp.linalg.norm(b, axis=1, keepdims=True) * b.shape[1] ** 0.5


def fb_loss(fs, b, target):
    n = len(b)
    off = 1 - jnp.eye(n)
    loss = 0
    for f in fs:
        m = f @ b.T
        loss += 0.5 * jnp.square((m - twin.DISCOUNT * target) * off).sum() / (n * (n - 1)) - jnp.diagonal(m).mean()
    gram = b @ b.T
    return loss + 0.5 * jnp.square(gram * off).sum() / (n * (n - 1)) - jnp.diagonal(gram).mean()


def start(params):
    zeros = lambda: jax.tree.map(jnp.zeros_like, params)  # noqa: E731
    return {"params": params, "mean": zeros(), "square": zeros(), "steps": jnp.zeros(())}


def adam(state, grads):
    steps = state["steps"] + 1
    mean = jax.tree.map(lambda m, g: twin.BETA1 * m + (1 - twin.BETA1) * g, state["mean"], grads)
    square = jax.tree.map(lambda v, g: twin.BETA2 * v + (1 - twin.BETA2) * g * g, state["square"], grads)
    rate, root = twin.RATE / (1 - twin.BETA1**steps), 1 / jnp.sqrt(1 - twin.BETA2**steps)
    update = lambda p, m, v: p - rate * m / (jnp.sqrt(v) * root + twin.EPSILON)  # noqa: E731
    params = jax.tree.map(update, state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square, "steps": steps}


def follow(target, params):
    return jax.tree.map(lambda t, p: t + twin.TAU * (p - t), target, params)


def looped(function, state):
    """A step that keeps its state between calls."""
    jitted = jax.jit(function, donate_argnums=0)
    held = [state]

    def step():
        held[0], value = jitted(held[0])
        return value.block_until_ready()

    return step


def discrete(params, batch):
    s, after, z = batch["s"], batch["next"], twin.sphere(batch["z"])
    rows, a = jnp.arange(len(s)), batch["a"][:, 0].astype("int32")

    def loss(p, target):
        mean = 0.5 * (heads(target, "f0", after, z) + heads(target, "f1", after, z))
        greedy = (mean * z[:, None]).sum(axis=2).argmax(axis=1)
        product = mean[rows, greedy] @ backward(target, after).T
        fs = [heads(p, name, s, z)[rows, a] for name in ("f0", "f1")]
        return fb_loss(fs, backward(p, after), jax.lax.stop_gradient(product))

    def function(state):
        adam_state, target = state
        value, grads = jax.value_and_grad(loss)(adam_state["params"], target)
        adam_state = adam(adam_state, grads)
        return (adam_state, follow(target, adam_state["params"])), value

    return looped(function, (start(params), jax.tree.map(jnp.array, params)))


def continuous(params, batch):
    s, a, after, noise, z = batch["s"], batch["a"], batch["next"], batch["noise"] * 0.3, twin.sphere(batch["z"])
    actor_params = {name: x for name, x in params.items() if name.startswith("actor/")}
    params = {name: x for name, x in params.items() if not name.startswith("actor/")}

    def actor(p, s):
        return jnp.tanh(pair(p, "actor", (s,), (s, z)))

    def fb(p, target, actor_p):
        next_a = jnp.clip(actor(actor_p, after) + noise, -1, 1)
        mean = 0.5 * sum(pair(target, name, (after, next_a), (after, z)) for name in ("f0", "f1"))
        product = jax.lax.stop_gradient(mean @ backward(target, after).T)
        fs = [pair(p, name, (s, a), (s, z)) for name in ("f0", "f1")]
        return fb_loss(fs, backward(p, after), product)

    def act(actor_p, p):
        action = actor(actor_p, s)
        q = sum((pair(p, name, (s, action), (s, z)) * z).sum(axis=1) for name in ("f0", "f1"))
        return -0.5 * q.mean()

    def function(state):
        adam_state, target, actor_state = state
        value, grads = jax.value_and_grad(fb)(adam_state["params"], target, actor_state["params"])
        adam_state = adam(adam_state, grads)
        target = follow(target, adam_state["params"])
        actor_value, grads = jax.value_and_grad(act)(actor_state["params"], adam_state["params"])
        return (adam_state, target, adam(actor_state, grads)), value + actor_value

    return looped(function, (start(params), jax.tree.map(jnp.array, params), start(actor_params)))


def belief(params, batch):
    flat, noise = batch["tokens"], batch["noise"]
    tokens = flat.reshape(twin.WINDOWS, twin.TOKENS, -1)
    states = flat[:, : twin.OBS + twin.ACTION]
    change = flat[:, twin.OBS + twin.ACTION :] - flat[:, : twin.OBS]

    def block(p, name, x):
        sets, count, width = x.shape
        qkv = linear(p, f"{name}/qkv", norm(p, f"{name}/norm1", x)).reshape(sets, count, 3, twin.HEADS, -1)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        shares = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / (width // twin.HEADS) ** 0.5)
        mixed = (shares @ v).transpose(0, 2, 1, 3).reshape(sets, count, width)
        x = x + linear(p, f"{name}/mix", mixed)
        return x + linear(p, f"{name}/down", gelu(linear(p, f"{name}/up", norm(p, f"{name}/norm2", x))))

    def loss(p):
        x = linear(p, "encoder/embed", tokens)
        for i in range(twin.BLOCKS):
            x = block(p, f"encoder/block{i}", x)
        mean, log_std = jnp.split(linear(p, "head", norm(p, "encoder/norm", x).mean(axis=1)), 2, axis=1)
        h = mean + jnp.exp(log_std) * noise
        predicted = mlp(p, "predictor", states, jnp.repeat(h, twin.TOKENS, axis=0))
        kl = 0.5 * (jnp.square(mean) + jnp.exp(2 * log_std) - 2 * log_std - 1).sum() / twin.WINDOWS
        return jnp.square(predicted - change).mean() + twin.KL * kl

    def function(state):
        value, grads = jax.value_and_grad(loss)(state["params"])
        length = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1, 1 / length), grads)
        return adam(state, grads), value

    return looped(function, start(params))


def act(params, batch):
    s, z = jnp.array(batch["s"]), jnp.array(twin.sphere(batch["z"]))
    function = jax.jit(lambda p: jnp.tanh(pair(p, "actor", (s,), (s, z))).sum())
    return lambda: function(params).block_until_ready()


if __name__ == "__main__":
    PARAMS, BATCH = twin.read(ARGS.file)
    PARAMS = {name: jnp.array(x) for name, x in twin.joined(PARAMS).items()}
    STEPS = {"fb-discrete": discrete, "fb-continuous": continuous, "belief": belief, "act": act}
    twin.serve(STEPS[ARGS.step](PARAMS, BATCH))
