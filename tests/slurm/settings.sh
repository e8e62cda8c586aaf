# The sweep of the test: small, but each training lasts long enough to be met in the middle. Names of settings are only here.
sweep=(
    doors --preset quick --seeds 1
    --set data.train_contexts=3 --set data.test_contexts=3 --set data.episodes=6
    --set belief.steps=1500 --set belief.batch=16
    --set fb.steps=2500 --set fb.contexts=1 --set fb.tasks=4 --set belief.cached=16
    --set fb.net.width=16 --set fb.net.head_width=32 --set fb.net.blocks=1 --set fb.muon_rate=0
    --set eval.rounds=2 --set eval.context_steps=50
)
methods=(--methods fb,bfb,rfb)
# A training that no time limit of a minute allows.
endless=(--set fb.steps=1000000)
# The weights of a trained agent in the folder of its run.
checkpoint=model/model.safetensors
