"""The losses of the measured steps, over `o`: the few operations that PyTorch and JAX spell differently.

`p` are parameters by name, `c` constants, `x` a batch, `k` the case with its settings.
"""

import math

FIRST_LOG_STD, REACHABILITY = -3.0, 0.1
EVIDENCE, CONTRADICTION, PSEUDO_VOTES, HIDDEN = 14.0, 3.0, 0.1, 1e4
DYNAMICS, OTHER_PARTS, HEADS, UNREACHABLE = 3.0, 0.3, 4, 1e-3
POSITIVE_OFFSET, NEGATIVE_OFFSET = 2.0, 5.0
LOG_FLOOR, SMALLEST_TARGET, GAP_TEMPERATURE = 1e-3, 2e-4, 0.1
KEY, LEAST_REWARD, AVERAGE_SCALE = 16, 1e-6, 0.01
SMALLEST_NORM = 1e-6


def linear(o, p, name, x):
    return o.linear(x, p[f"{name}/w"], p[f"{name}/b"])


def norm(o, p, name, x):
    return o.layer_norm(x, p[f"{name}/gain"], p[f"{name}/shift"])


def mlp(o, p, name, *parts):
    """LayerNorm and tanh after the first layer, GELU after the others."""
    x = o.cat(parts, 1) if len(parts) > 1 else parts[0]
    count = sum(1 for key in p if key.startswith(name + "/") and key.endswith("/w"))
    x = o.tanh(norm(o, p, f"{name}/norm", linear(o, p, f"{name}/0", x)))
    for i in range(1, count - 1):
        x = o.gelu(linear(o, p, f"{name}/{i}", x))
    return linear(o, p, f"{name}/{count - 1}", x)


def pair(o, p, name, left, right):
    return mlp(o, p, f"{name}/trunk", mlp(o, p, f"{name}/left", *left), mlp(o, p, f"{name}/right", *right))


def transformer(o, p, name, tokens, blocks, heads, displacements=None, places=None):
    """Tokens `[sets, tokens, input]` in the light of their sets; with displacements, scores have a bias for each. What is the same
    in every set, `places`, is embedded once."""
    if places is None:
        x = linear(o, p, f"{name}/embed", tokens)
    else:
        w, b = p[f"{name}/embed/w"], p[f"{name}/embed/b"]
        own = tokens.shape[2]
        x = o.linear(tokens, w[:own], b) + places @ w[own:]
    sets, count, width = x.shape
    for i in range(blocks):
        block = f"{name}/block{i}"
        qkv = linear(o, p, f"{block}/qkv", norm(o, p, f"{block}/norm1", x))
        q, k, v = o.permute(qkv.reshape(sets, count, 3, heads, width // heads), (2, 0, 3, 1, 4))
        bias = 0.0
        if displacements is not None:
            bias = p[f"{block}/bias"][displacements].T.reshape(1, heads, count, count)
        mixed = o.attention(q, k, v, bias).swapaxes(1, 2).reshape(sets, count, width)
        x = x + linear(o, p, f"{block}/mix", mixed)
        x = x + linear(o, p, f"{block}/down", o.gelu(linear(o, p, f"{block}/up", norm(o, p, f"{block}/norm2", x))))
    return norm(o, p, f"{name}/norm", x)


def kl(o, mean, log_std):
    return 0.5 * (o.exp(2 * log_std) + mean**2 - 2 * log_std - 1).sum() / len(mean)


def sphere(o, x):
    return x / o.sqrt((x**2).sum(axis=1, keepdims=True)).clip(SMALLEST_NORM, None) * math.sqrt(x.shape[1])


# The belief over sets of transitions.


def predictor(o, p, name, sa, *beliefs):
    """The same rows under several beliefs: what does not depend on h is computed once, and one h for all rows is a gain of the
    weights."""
    act = mlp(o, p, f"{name}/act", sa)  # [rows, width]
    w, b = p[f"{name}/trunk/0/w"], p[f"{name}/trunk/0/b"]
    width = act.shape[1]
    gated, plain = w[:width], w[width:]
    onto = o.linear(act, plain, b) if len(beliefs[0]) > 1 else None
    for h in beliefs:
        gain = linear(o, p, f"{name}/told", h)  # [groups, width]
        groups = len(gain)
        if groups == 1:
            first = o.linear(act, gated * gain.T + plain, b)
        else:
            first = onto + (act.reshape(groups, -1, width) * gain[:, None]).reshape(-1, width) @ gated
        yield linear(o, p, f"{name}/trunk/1", o.tanh(norm(o, p, f"{name}/trunk/norm", first)))


def belief_transitions(o, p, c, x, k):
    b, data = k.belief, c
    sets, dim = len(x["noise"]), b.dim
    tokens = data["token"][x["contexts"]].reshape(sets, -1, data["token"].shape[1])
    features = data["s"].shape[1]
    pooled = transformer(o, p, "encoder", tokens, b.blocks, b.heads).mean(axis=1)
    shares = x["shares"].reshape(sets, -1, 1)
    met = o.cat([shares, tokens[:, :, features:] * shares], 2)
    outer = (met.swapaxes(1, 2) @ tokens[:, :, :features]).reshape(sets, -1)
    both = linear(o, p, "read", pooled) + mlp(o, p, "recall", outer)
    mean, log_std = both[:, :dim], both[:, dim:] + FIRST_LOG_STD
    h = mean + o.exp(log_std) * x["noise"]
    s, change = data["s"][x["rows"]], data["change"][x["rows"]]
    sa = o.cat([s, data["a"][x["rows"]]], 1)
    [told], [untold] = predictor(o, p, "g", sa, h), predictor(o, p, "blind", sa, o.zeros((1, dim)))
    error, unconditioned = ((told - change) ** 2).mean(), ((untold - change) ** 2).mean()
    turned = o.cat([h[1:], h[:1]], 0)
    own, other = predictor(o, p, "there", s, h, turned)
    reachable = (o.softplus(-own) + o.softplus(other)).mean()
    return error + unconditioned + b.kl * kl(o, mean, log_std) + REACHABILITY * reachable


# The belief over listed states.


def drawn(o, c, x, k):
    """Where contexts entered and were blocked, and what they should tell."""
    vocabulary, count = k.states * k.actions * k.width, k.belief.batch
    for way in range(k.belief.context["ways"]):
        places = c["tokens"][x[f"positions{way}"]] + x[f"bags{way}"]
        # The last bag, which padding lands in, and what lies beyond it are cut off.
        bag = o.marks((count + 1) * vocabulary, places)[: count * vocabulary].reshape(count, vocabulary)
        truth = c["shares"][x[f"groups{way}"]]
        if way == 0:
            bags, truths = bag, truth
        else:
            beyond = o.float(x[f"normals{way}"] @ c["coordinates"] > x[f"offsets{way}"])[:, c["from_state"]]
            bags, truths = bags + (bag - bags) * beyond, truths + (truth - truths) * beyond
    return (bags @ c["entered"]).clip(None, 1), (bags @ c["blocked"]).clip(None, 1), truths


def recall(o, c, entered, blocked, hidden):
    seen = entered - blocked * (1 - entered)
    contradictions = (abs(seen) @ abs(c["signs"]).T - seen @ c["signs"].T) * 0.5 + hidden * HIDDEN
    best = o.amin(contradictions, 1)
    weight = o.exp((contradictions - best) * -CONTRADICTION)
    total, squares = weight.sum(axis=1, keepdims=True), (weight**2).sum(axis=1, keepdims=True)
    opened, shut = weight @ c["signs"].clip(0, None), weight @ (-c["signs"]).clip(0, None)
    odds = o.log((opened + PSEUDO_VOTES) / (shut + PSEUDO_VOTES))
    return (opened - shut) / total, odds, 1 / (best + 1), squares / total**2


def belief_listed(o, p, c, x, k):
    b, states = k.belief, k.states
    with o.no_grad():
        entered, blocked, truth = drawn(o, c, x, k)
        mean, odds, fit, alone = recall(o, c, entered, blocked, x["hidden"])
        wide = [entered, blocked, mean, o.expand(fit, states), o.expand(alone, states)]
        tokens = o.stack(wide, 2) * EVIDENCE  # [contexts, states, 5]
    y = transformer(o, p, "set", tokens, b.blocks, b.heads, places=c["places"])  # [contexts, states, width]
    both = linear(o, p, "read", y)
    log_std = o.tanh(both[:, :, 1]) * 3 - 2
    own = (y * p["own/read"][None]).sum(axis=2)
    weight = p["recall"]
    h_mean = both[:, :, 0] + own + p["own/bias"] + entered * weight[0] - blocked * weight[1] + odds * both[:, :, 2]
    h = h_mean + o.exp(log_std) * x["noise"]
    logits = h[:, c["enters"]] * c["leaves"] + p["kind/bias"][:, c["kinds"]] + c["mask"]
    log_p = o.log_softmax(logits.reshape(-1, k.width), 1)
    prediction = -(log_p * truth.reshape(-1, k.width)).sum() / truth.sum().clip(1, None)
    return prediction + b.kl * kl(o, h_mean, log_std)


# F and B on observations.


def embed(o, p, s):
    return sphere(o, mlp(o, p, "b", s))


def off_diagonal(o, m):
    """The mean square beside the diagonal."""
    n = len(m)
    return ((m**2).sum() - (o.diagonal(m) ** 2).sum()) / (n * (n - 1))


def pair_losses(o, fs, b, target, k):
    """The FB loss of every net, and the orthonormality of B; F is in units of 1 / (1 - gamma)."""
    loss = 0
    for f in fs:
        m = f @ b.T
        loss = loss + 0.5 * off_diagonal(o, m - k.fb.gamma * target) - o.diagonal(m).mean()
    gram = b @ b.T
    ortho = 0.5 * off_diagonal(o, gram) - o.diagonal(gram).mean()
    return (loss + k.fb.ortho_coef * ortho) / k.fb.dim


def sampled(o, p, c, x):
    """The batch: states, actions, what followed, and what the nets are told."""
    with o.no_grad():
        z = embed(o, p, c["s"][x["goals"]]) * x["is_goal"] + x["random"]
        told = o.cat([c["input"][x["chosen"]], z], 1)
        rows = x["rows"]
        return o.stop(z), o.stop(told), c["s"][rows], c["a"][rows], c["index"][rows], c["next"][rows], c["alive"][rows]


def nets(k):
    return [f"f{i}" for i in range(k.fb.ensemble)]


def target_product(o, target, f, after, alive):
    return (f * alive) @ embed(o, target, after).T


def fb_heads(o, p, target, c, x, k):
    z, told, s, _, index, after, alive = sampled(o, p, c, x)
    unit = 1 / (1 - k.fb.gamma)
    rows = o.arange(len(s))
    heads = lambda q, name, s: pair(o, q, name, (s,), (s, told)).reshape(len(s), -1, k.fb.dim)  # noqa: E731
    with o.no_grad():
        mean = sum(heads(target, name, after) for name in nets(k)) / k.fb.ensemble
        greedy = (mean * z[:, None]).sum(axis=2).argmax(axis=1)
        product = o.stop(target_product(o, target, mean[rows, greedy] * unit, after, alive))
    fs = [heads(p, name, s)[rows, index] * unit for name in nets(k)]
    return pair_losses(o, fs, embed(o, p, after), product, k)


def with_action(o, p, name, s, a, told):
    return pair(o, p, name, (s, a), (s, told))


def act(o, p, s, told):
    return o.tanh(pair(o, p, "actor", (s,), (s, told)))


def fb_actor(o, p, target, actor, c, x, k):
    z, told, s, a, _, after, alive = sampled(o, p, c, x)
    unit = 1 / (1 - k.fb.gamma)
    with o.no_grad():
        next_a = (act(o, actor, after, told) + x["noise"]).clip(-1, 1)
        mean = sum(with_action(o, target, name, after, next_a, told) for name in nets(k)) * (unit / k.fb.ensemble)
        product = o.stop(target_product(o, target, mean, after, alive))
    fs = [with_action(o, p, name, s, a, told) * unit for name in nets(k)]
    return pair_losses(o, fs, embed(o, p, after), product, k), (z, told, s)


def actor_loss(o, actor, p, batch, k):
    z, told, s = batch
    a = act(o, actor, s, told)
    q = sum((with_action(o, p, name, s, a, told) * z).sum(axis=1) for name in nets(k))
    return -q.mean() / (k.fb.ensemble * k.fb.dim)


# F and B on listed states.


def local(o, c, moving, staying, k):
    shape = (len(moving), k.states, k.actions)
    entering = moving[:, c["incoming"]] * c["has_incoming"]
    return (1 - staying).reshape(shape), entering.reshape(shape)


def reward_kernels(o, p, c, x, reward, kernels):
    """Where reward lies as seen from each state: averages of it, and the best of it at hand."""
    contexts, tasks, states = reward.shape
    heads = lambda name: linear(o, p, name, x).reshape(contexts, states, kernels, KEY).swapaxes(1, 2)  # noqa: E731
    bias = p["f/kernels/bias"][c["displacements"]].T.reshape(1, kernels, states, states)
    logits = heads("f/kernels/query") @ heads("f/kernels/key").swapaxes(2, 3) / math.sqrt(KEY) + bias
    maxima = kernels // 4
    averages = kernels - maxima
    shares = o.softmax(logits[:, :averages], 3).reshape(contexts, averages * states, states)
    y = o.permute((shares @ reward.swapaxes(1, 2)).reshape(contexts, averages, states, tasks), (0, 3, 2, 1))
    near = -o.softplus(logits[:, averages:] + 2).reshape(contexts, 1, maxima * states, states)
    best = near + o.log(reward.clip(0, None) + LEAST_REWARD).reshape(contexts, tasks, 1, states)
    m = o.amax(best, 3).reshape(contexts, tasks, maxima, states).swapaxes(2, 3)
    seen = o.cat([y * 10, o.asinh(y / AVERAGE_SCALE), m / 3 + 1.5, o.exp(m) * 5], 3)
    return linear(o, p, "f/kernels/out", seen.reshape(-1, 2 * kernels))


def token_net(o, p, c, moving, entering, z, reward, k):
    net, states = k.fb.net, k.states
    contexts, groups = len(moving), len(z)
    log = lambda x: o.log(x + 0.01) / 4  # noqa: E731
    parts = o.cat([moving, log(moving), entering, log(entering)], 2) * DYNAMICS
    x = transformer(o, p, "f/tokens", parts, net["blocks"], HEADS, c["displacements"])  # [contexts, states, width]
    width, head = x.shape[2], net["head_width"]
    reward = reward.reshape(contexts, -1, states)
    most = (o.softmax(reward * o.exp(p["f/sharpness"]), 2) @ x).reshape(groups, width)
    all_states = (reward @ x).reshape(groups, width)
    task = linear(o, p, "f/rewarded", most) + OTHER_PARTS * linear(o, p, "f/proportional", all_states)
    task = task.reshape(contexts, -1, 1, head) + linear(o, p, "f/whole", x.mean(axis=1)).reshape(contexts, 1, 1, head)
    h = (linear(o, p, "f/state", x)[:, None] + task).reshape(groups * states, head)
    if net["reward_kernels"] > 0:
        h = h + reward_kernels(o, p, c, x, reward, net["reward_kernels"])
    h = h + linear(o, p, "f/hidden1", o.relu(norm(o, p, "f/norm1", h)))
    h = o.relu(norm(o, p, "f/norm2", h))
    h = h + o.relu(linear(o, p, "f/hidden2", h))
    return linear(o, p, "f/out", h).reshape(groups, states, -1)


def assemble(o, raw, z, dim):
    """The log value head: F and its value along z."""
    f, z = raw[:, :, :dim], z[:, None]
    along = (f * z).sum(axis=2, keepdims=True) / dim
    value = o.sigmoid(-(raw[:, :, dim : dim + 1] + POSITIVE_OFFSET)) - o.sigmoid(
        -(raw[:, :, dim + 1 :] + NEGATIVE_OFFSET)
    )
    return f + z * (value - along), value[:, :, 0]


def q_of(o, c, moving, staying, v, reward, k):
    groups = len(v)
    ahead = (v[:, c["successors"]] * moving).reshape(groups, k.states * k.actions, k.width).sum(axis=2)
    stay = v * (1 - k.belief.block_persistence) + reward * k.belief.block_persistence
    return ahead.reshape(groups, k.states, k.actions) + stay[:, :, None] * staying.reshape(groups, k.states, k.actions)


def back_up(o, c, moving, staying, v, reward, k):
    gamma, depth, states = k.fb.gamma, k.fb.target_depth, k.states
    persistence, groups = k.belief.block_persistence, len(v)
    q = q_of(o, c, moving, staying, v, reward, k)
    for _ in range(depth):
        best = q.argmax(axis=2)
        v = reward * (1 - gamma) + gamma * o.amax(q, 2)
        q = q_of(o, c, moving, staying, v, reward, k)
    policy = o.one_hot(best, k.actions)  # [groups, states, actions]
    per_token = o.spread(policy.reshape(groups, -1), k.width)
    weight = per_token * moving * gamma
    bootstrap = o.add_at(states * states, c["edges"], weight).reshape(groups, states, states)
    stays = (policy * staying.reshape(policy.shape)).sum(axis=2)[:, :, None] * gamma
    eye = c["one_hot"]
    bootstrap = bootstrap + eye * stays * (1 - persistence)
    occupancy = eye * (stays * persistence + (1 - gamma))
    steps = 1
    while steps < depth:
        occupancy = occupancy + bootstrap @ occupancy
        bootstrap = bootstrap @ bootstrap
        steps *= 2
    return v, q, occupancy, bootstrap


def log_scale(o, v):
    return o.asinh(v / LOG_FLOOR)


def weighted_mean(x, weights):
    return (x * weights).sum() / weights.sum().clip(1e-6, None)


def fb_listed(o, p, target, c, x, k):
    fb, states, dim = k.fb, k.states, k.fb.dim
    tasks = fb.tasks
    table = lambda q: sphere(o, q["b/table"])  # noqa: E731
    with o.no_grad():
        moving = c["dynamics"][x["chosen"]] * c["moves"]
        staying = 1 - moving.reshape(len(moving), -1, k.width).sum(axis=2)
        near = local(o, c, moving, staying, k)
        moving, staying = o.each(moving, tasks), o.each(staying, tasks)
        target_b = table(target)
        z = target_b[x["goals"]] * x["is_goal"] + x["random"]
        if "rewards" in x:
            z = z + sphere(o, x["rewards"] @ target_b) * x["is_mixture"]
        weight = o.each(o.amax(near[1], 2), tasks) + UNREACHABLE  # [groups, states]
        reward = z @ target_b.T / dim
        f, value = assemble(o, token_net(o, target, c, *near, z, reward, k), z, dim)
        measure = f @ target_b.T / dim
        v, q, occupancy, bootstrap = back_up(o, c, moving, staying, value, reward, k)
        target_measure = o.stop(occupancy + bootstrap @ measure)
        v, q, z, reward = o.stop(v), o.stop(q), o.stop(z), o.stop(reward)
    b = table(p)
    f, value = assemble(o, token_net(o, p, c, *near, z, z @ o.stop(b).T / dim, k), z, dim)
    off = ((f @ b.T / dim - target_measure) ** 2).sum(axis=2)
    loss = fb.fb_coef * weighted_mean(off, weight)
    loss = loss + fb.ortho_coef * ((b @ b.T / dim - c["one_hot"]) ** 2).sum() / states
    counted = weight if fb.log_losses_on_all_tasks else weight * x["is_goal"]
    off = abs(log_scale(o, value) - log_scale(o, v))
    smooth = o.where(off < 1, 0.5 * off**2, off - 0.5)
    loss = loss + fb.log_value_coef * weighted_mean(smooth, counted * o.float(abs(v) > SMALLEST_TARGET))
    own = q_of(o, c, moving, staying, value, reward, k)
    log_target, log_q = (o.log_softmax(log_scale(o, q) / GAP_TEMPERATURE, 2) for q in (q, own))
    gap = (o.exp(log_target) * (log_target - log_q)).sum(axis=2)
    return loss + fb.gap_coef * weighted_mean(gap, counted)
