use super::*;
use crate::testing::tabled;
use proptest::prelude::*;
use rand::seq::SliceRandom as _;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn a_belief_is_of_a_set(seed in 0_u64..1000, length in 0_usize..60) {
        let (_, table) = tabled("doors", 2, 3);
        for encoder in [EncoderKind::States, EncoderKind::Transitions] {
            let config = BeliefConfig { width: 16, encoder, ..BeliefConfig::default() };
            let belief = StateEvidence::new(table.clone(), &config, 1, &Device::flex()).unwrap();
            let mut tokens: Vec<u32> = table.episode(0)[..length].to_vec();
            let infer = |tokens: &[u32]| belief.infer_without(&[&belief.seen(tokens.iter().copied())], &[]);
            let before = infer(&tokens);
            let again: Vec<u32> = tokens.iter().chain(&tokens).copied().collect();
            prop_assert_eq!(&infer(&again), &before, "repetition says nothing new");
            tokens.shuffle(&mut stream(seed, "shuffle", &[]));
            prop_assert_eq!(infer(&tokens), before, "order says nothing");
        }
    }
}

#[test]
fn an_open_state_can_be_entered_and_is_no_transition() {
    let (_, table) = tabled("doors", 4, 30);
    let config = BeliefConfig { width: 16, block_persistence: 1.0, ..BeliefConfig::default() };
    let belief = StateEvidence::new(table.clone(), &config, 1, &Device::flex()).unwrap();
    let signs = read(belief.known.as_ref().unwrap().signs.clone());
    let sign = |group: usize, state: usize| signs[group * table.states() + state];
    // Open in some known contexts, a wall in others.
    let differs = |s: &usize| (0..4).any(|g| sign(g, *s) > 0.0) && (0..4).any(|g| sign(g, *s) < 0.0);
    let state = (0..table.states()).find(differs).unwrap();
    let mut obs = vec![0.0; table.spec().obs_dim()];
    table.write_obs(state, &mut obs);
    let mut evidence = belief.no_evidence();
    let after = |evidence: &Evidence| {
        let mean = belief.infer(&[evidence]).mean;
        (belief.dynamics(&mean, &[evidence]), mean)
    };
    let (p, h) = after(&evidence);
    belief.observe_open(&mut evidence, &obs);
    let (p_open, h_open) = after(&evidence);
    assert!(h_open[state] > h[state] + 2.0, "{} before, {} after", h[state], h_open[state]);
    assert!(table.enterable(&p)[state] < 0.99 && table.enterable(&p_open)[state] > 0.999);
    assert_eq!(evidence.transitions(), 0);
}

#[test]
fn a_sampled_context_says_what_its_transitions_say() {
    let (_, table) = tabled("doors", 3, 5);
    let config = crate::belief::contexts::ContextConfig { mix: 0.0, ..Default::default() };
    let sampler = ContextSampler::new(table.clone(), config, &Device::flex());
    let batch = sampler.draw(&mut stream(4, "contexts", &[]), 6);
    let (met, truth) = (read(batch.met), read(batch.truth));
    let mut rng = stream(4, "contexts", &[]);
    for (i, groups) in batch.groups.iter().enumerate() {
        let group = rng.random_range(0..3);
        assert_eq!(groups, &[group]);
        let positions = sampler.draw_positions(&mut rng, group);
        let mut set = vec![0.0; table.vocabulary()];
        positions.into_iter().for_each(|position| set[table.tokens[position] as usize] = 1.0);
        assert_eq!(met[i * table.vocabulary()..][..table.vocabulary()], set);
        let shares = table.shares(table.groups[group].counts.clone());
        assert_eq!(truth[i * table.vocabulary()..][..table.vocabulary()], shares);
    }
}
