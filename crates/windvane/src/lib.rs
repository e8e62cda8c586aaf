//! Learning on top of [`windvane_world`]: belief, agents, training, adaptation, evaluation and reports.
