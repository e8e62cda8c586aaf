# The sweep of the test: small, but each training lasts long enough to be met in the middle. Names of settings are only here.
sweep=(
    doors --preset quick --seeds 1
    --set world.train=3 --set world.test=3 --set data.episodes=6
    --set belief.steps=1500 --set belief.batch=16
    --set agent.steps=4000 --set agent.groups=4 --set agent.beliefs=16
    --set agent.nets.width=64 --set agent.nets.context_width=64
    --set eval.rounds=2 --set eval.context_steps=50
)
methods=(--methods fb,bfb,rfb)
# A training that no time limit of a minute allows.
endless=(--set agent.steps=1000000)
# The checkpoint of an agent in the folder of its run.
checkpoint=agent.safetensors
