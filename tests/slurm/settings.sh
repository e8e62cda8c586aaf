# The sweep of the test: small, but each training lasts long enough to be met in the middle. Names of settings are only here.
sweep=(
    doors --preset quick --seeds 1
    --set data.train_contexts=3 --set data.test_contexts=3 --set data.episodes=6
    --set belief.steps=1500 --set belief.batch=16
    --set fb.steps=2000 --set fb.contexts=4 --set belief.cached=16
    --set agent.nets.width=64 --set agent.nets.context_width=64
    --set eval.rounds=2 --set eval.context_steps=50
)
methods=(--methods fb,bfb,rfb)
# A training that no time limit of a minute allows.
endless=(--set fb.steps=1000000)
# The checkpoint of an agent in the folder of its run.
checkpoint=agent.safetensors
