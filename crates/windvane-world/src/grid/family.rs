//! A family of layouts and the contextual environment over it.

use super::batch::GridBatch;
use super::beliefs::LayoutBeliefs;
use super::dynamics::Dynamics;
use super::layout::{Layout, MOVES};
use super::planner::Planner;
use crate::batch::BatchEnv;
use crate::ceilings::ExactBeliefs;
use crate::env::{Action, ActionSpace, Cmdp, ContextId, Dim, Env, EnvSpec, Split, Start, Step};
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::registry::WorldConfig;
use crate::reward::{Reward, Task};
use crate::rng::{self, Rng};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use serde_json::json;
use std::sync::Arc;

/// Steps in an episode, as in the paper.
const HORIZON: usize = 100;

/// All layouts that exist; a layout's place in the list is its code.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) side: usize,
    pub(crate) start: usize,
    pub(crate) layouts: Vec<Layout>,
    /// Goal cells of each layout.
    pub(crate) goals: Vec<[usize; 3]>,
}

/// A grid world: every layout of a family, some to train on and others held out.
pub struct GridWorld {
    spec: Arc<EnvSpec>,
    family: &'static Family,
    train: Vec<ContextId>,
    test: Vec<ContextId>,
}

impl GridWorld {
    /// Draws `train` and `test` layouts of the family.
    pub(crate) fn new(
        family: &'static Family,
        config: &WorldConfig,
        sizes: [usize; 2],
    ) -> Result<Self, WorldError> {
        let [train, test] = sizes;
        let exist = family.layouts.len();
        if train.saturating_add(test) > exist {
            return Err(WorldError::Invalid(format!(
                "{}: {train} training and {test} test layouts asked for, but only {exist} layouts exist",
                family.name
            )));
        }
        let mut order: Vec<ContextId> = (0..exist as u64).map(ContextId).collect();
        order.shuffle(&mut rng::stream(config.seed, "contexts", &[]));
        // From the two ends of one order: whatever the sizes, the first training layouts and the first test layouts
        // of a seed stay the same, and the two never meet.
        let held_out = order.iter().rev().take(test).copied().collect();
        order.truncate(train);
        let dim = |name: &str| Dim { name: name.into(), low: 1.0, high: family.side as f32, integer: true };
        let spec = EnvSpec {
            name: family.name.to_owned(),
            observation: vec![dim("x"), dim("y")],
            action: ActionSpace::Discrete { names: MOVES.map(str::to_owned).to_vec() },
            horizon: HORIZON,
        };
        Ok(Self { spec: Arc::new(spec), family, train: order, test: held_out })
    }

    /// Every layout there is, in the order of their codes; the uniform prior is over these.
    pub fn layouts(&self) -> &[Layout] {
        &self.family.layouts
    }

    /// The layout of a context.
    pub fn layout(&self, context: ContextId) -> Result<&Layout, WorldError> {
        self.index(context).map(|index| &self.family.layouts[index])
    }

    /// The start cell of every layout.
    pub fn start(&self) -> usize {
        self.family.start
    }

    /// The goal cells of a context, in the order of its tasks.
    pub fn goals(&self, context: ContextId) -> Result<&[usize], WorldError> {
        self.index(context).map(|index| &self.family.goals[index][..])
    }

    fn index(&self, context: ContextId) -> Result<usize, WorldError> {
        let exist = self.family.layouts.len();
        usize::try_from(context.0).ok().filter(|&index| index < exist).ok_or_else(|| {
            WorldError::Invalid(format!(
                "{}: there is no layout {}; {exist} exist, from 0",
                self.spec.name, context.0
            ))
        })
    }

    fn observation(&self, cell: usize) -> [f32; 2] {
        let mut obs = [0.0; 2];
        self.spec.write_state(cell, &mut obs);
        obs
    }
}

impl Cmdp for GridWorld {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn contexts(&self, split: Split) -> &[ContextId] {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    fn instantiate(&self, context: ContextId) -> Result<Box<dyn Env>, WorldError> {
        let layout = *self.layout(context)?;
        Ok(Box::new(GridEnv {
            spec: self.spec.clone(),
            layout,
            start: self.family.start,
            cell: self.family.start,
        }))
    }

    fn tasks(&self, context: ContextId) -> Result<Vec<Task>, WorldError> {
        let goal_task = |(number, &cell)| Task {
            name: format!("goal-{}", number + 1),
            reward: Reward::Goal { goal: self.observation(cell).to_vec(), tolerance: 0.5 },
        };
        Ok(self.goals(context)?.iter().enumerate().map(goal_task).collect())
    }

    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError> {
        let layout = self.layout(context)?;
        let goals: Vec<[f32; 2]> = self.goals(context)?.iter().map(|&cell| self.observation(cell)).collect();
        Ok(json!({
            "kind": "grid",
            "width": self.family.side + 2,
            "height": self.family.side + 2,
            "rows": layout.rows(),
            "cell_size": 1.0,
            "origin": [0.0, 0.0],
            "start": self.observation(self.family.start),
            "goals": goals,
        }))
    }

    fn oracle(&self, context: ContextId) -> Result<Option<Box<dyn Policy + '_>>, WorldError> {
        let map = Dynamics::of(self.layout(context)?);
        Ok(Some(Box::new(Planner::new(&self.spec, map))))
    }

    fn exact_beliefs(&self) -> Result<Option<Box<dyn ExactBeliefs + '_>>, WorldError> {
        let training = self.contexts(Split::Train).iter().map(|&context| self.layout(context).copied());
        let training = training.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Box::new(LayoutBeliefs::new(&self.spec, self.layouts(), &training))))
    }

    fn batch(&self, contexts: &[ContextId]) -> Result<Box<dyn BatchEnv>, WorldError> {
        let layouts =
            contexts.iter().map(|&context| self.layout(context).copied()).collect::<Result<_, _>>()?;
        Ok(Box::new(GridBatch::new(self.spec.clone(), layouts, self.family.start)))
    }

    fn grid(&self) -> Option<&GridWorld> {
        Some(self)
    }
}

/// One layout, walked by one agent.
struct GridEnv {
    spec: Arc<EnvSpec>,
    layout: Layout,
    start: usize,
    cell: usize,
}

impl Env for GridEnv {
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.cell = match start {
            Start::Fixed => self.start,
            Start::Random => random_free(&self.layout, rng),
        };
        self.spec.write_state(self.cell, obs);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        let Action::Discrete(index @ 0..4) = action else {
            return Err(self.spec.action.reject(&self.spec.name, action));
        };
        self.cell = self.layout.step(self.cell, index as usize);
        self.spec.write_state(self.cell, obs);
        Ok(Step::default())
    }
}

/// A free cell, each equally likely.
pub(crate) fn random_free(layout: &Layout, rng: &mut Rng) -> usize {
    let count = layout.free_bits().count_ones() as usize;
    layout.free_cells().nth(rng.random_range(0..count)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{UNREACHABLE, distances, doors, four_rooms};
    use crate::registry::make;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_layout_is_different_and_all_its_free_cells_are_connected() {
        for family in [&*doors::FAMILY, &*four_rooms::FAMILY] {
            let different: BTreeSet<u128> = family.layouts.iter().map(Layout::free_bits).collect();
            assert_eq!(different.len(), family.layouts.len());
            for layout in &family.layouts {
                let distance = distances(layout, family.start);
                assert!(
                    (0..layout.cells()).all(|cell| layout.is_free(cell) == (distance[cell] != UNREACHABLE))
                );
            }
        }
    }

    #[test]
    fn more_layouts_than_exist_are_refused_with_their_number() {
        let asked = WorldConfig { train: Some(40), test: Some(10), ..WorldConfig::default() };
        let error = make("doors", &asked).err().unwrap().to_string();
        assert!(error.contains("only 49 layouts exist"), "{error}");
        assert!(make("doors", &WorldConfig { train: Some(usize::MAX), ..asked }).is_err());
        assert!(make("doors", &WorldConfig { train: Some(39), ..asked }).is_ok());
    }

    #[test]
    fn a_context_that_does_not_exist_is_refused() {
        let world = make("four-rooms", &WorldConfig::default()).unwrap();
        for code in [4_900, u64::MAX] {
            let error = world.instantiate(ContextId(code)).err().unwrap().to_string();
            assert!(error.contains("4900 exist"), "{error}");
        }
    }

    #[test]
    fn an_action_that_does_not_exist_is_refused() {
        let world = make("doors", &WorldConfig::default()).unwrap();
        let mut env = world.instantiate(ContextId(0)).unwrap();
        for action in [Action::Discrete(4), Action::Continuous(&[0.0])] {
            let error = env.step(action, &mut [0.0; 2]).unwrap_err().to_string();
            assert!(error.contains("right, down, left, up"), "{error}");
        }
    }

    #[test]
    fn random_starts_cover_every_free_cell_and_nothing_else() {
        let world = make("doors", &WorldConfig::default()).unwrap();
        let mut env = world.instantiate(ContextId(10)).unwrap();
        let mut rng = rng::stream(0, "test", &[]);
        let mut obs = [0.0; 2];
        let mut seen = BTreeSet::new();
        for _ in 0..1000 {
            env.reset(Start::Random, &mut rng, &mut obs).unwrap();
            seen.insert(world.spec().state_of(&obs).unwrap());
        }
        let layout = world.grid().unwrap().layout(ContextId(10)).unwrap();
        assert_eq!(seen, layout.free_cells().collect());
    }

    proptest! {
        #[test]
        fn splits_are_disjoint_and_grow_without_reshuffling(
            seed: u64,
            name in prop::sample::select(vec!["doors", "four-rooms"]),
            train in 0_usize..25,
            test in 0_usize..24,
        ) {
            let sized = |train, test| {
                let config = WorldConfig { seed, train: Some(train), test: Some(test) };
                let world = make(name, &config).unwrap();
                [Split::Train, Split::Test].map(|split| world.contexts(split).to_vec())
            };
            let [few, held_out] = sized(train, test);
            let all: BTreeSet<ContextId> = few.iter().chain(&held_out).copied().collect();
            prop_assert_eq!(all.len(), train + test);
            let [more, more_held_out] = sized(25, 24);
            prop_assert_eq!(&more[..train], &few);
            prop_assert_eq!(&more_held_out[..test], &held_out);
        }
    }
}
