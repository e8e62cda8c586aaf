//! Randomized Pointmass: a point that slides through a random maze.

mod batch;
mod beeline;
mod follower;
mod maze;
mod motion;
mod posterior;
mod rewards;

use crate::batch::BatchEnv;
use crate::ceilings::ExactBeliefs;
use crate::env::{Action, ActionSpace, Cmdp, ContextId, Dim, Env, EnvSpec, Split, Start, Step};
use crate::error::WorldError;
use crate::protocol::Policy;
use crate::registry::WorldConfig;
use crate::reward::{Reward, SampledTask, Task};
use crate::rng::{self, Rng};
use batch::PointBatch;
pub use beeline::Beeline;
pub use follower::Follower;
pub use maze::Maze;
use maze::SIDE;
use motion::{CELL, ROOM, Walls};
use posterior::MapBeliefs;
use rand::RngExt as _;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

/// Steps in an episode, as in the paper.
const HORIZON: usize = 250;
/// How close to the goal is close enough; OGBench's.
const TOLERANCE: f32 = 1.0;
/// How far from the middle of its cell an episode may begin, along each axis; OGBench's.
const START_NOISE: f32 = 1.0;
/// Most maps that can be asked for.
const MOST: usize = 100_000;

/// The point in random mazes. A context's number is its map's code.
pub struct Pointmass {
    spec: Arc<EnvSpec>,
    train: Vec<ContextId>,
    test: Vec<ContextId>,
}

impl Pointmass {
    /// Draws `train` and `test` maps.
    pub(crate) fn new(config: &WorldConfig, sizes: [usize; 2]) -> Result<Self, WorldError> {
        let [train, test] = sizes;
        if train.saturating_add(test) > MOST {
            return Err(WorldError::Invalid(format!(
                "pointmass: {train} training and {test} test maps asked for, but at most {MOST} are drawn"
            )));
        }
        let mut taken = HashSet::new();
        let mut draw = |purpose, count| {
            let mut rng = rng::stream(config.seed, purpose, &[]);
            let fresh =
                std::iter::repeat_with(|| Maze::draw(&mut rng).code()).filter(|&code| taken.insert(code));
            fresh.take(count).map(ContextId).collect::<Vec<_>>()
        };
        let test = draw("test maps", test);
        let train = draw("training maps", train);
        let dim = |name: &str| Dim {
            name: name.into(),
            low: -ROOM,
            high: CELL * (SIDE - 1) as f32 + ROOM,
            integer: false,
        };
        let spec = EnvSpec {
            name: "pointmass".to_owned(),
            observation: vec![dim("x"), dim("y")],
            action: ActionSpace::Continuous { low: vec![-1.0; 2], high: vec![1.0; 2] },
            horizon: HORIZON,
        };
        Ok(Self { spec: Arc::new(spec), train, test })
    }
}

/// The map of a context.
fn maze(context: ContextId) -> Result<Maze, WorldError> {
    Maze::from_code(context.0)
        .ok_or_else(|| WorldError::Invalid(format!("pointmass: {} is not the code of a map", context.0)))
}

/// The observation at the middle of a cell.
pub(crate) fn middle(cell: usize) -> [f32; 2] {
    [CELL * (cell % SIDE) as f32, CELL * (cell / SIDE) as f32]
}

impl Cmdp for Pointmass {
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
        let maze = maze(context)?;
        let at = middle(maze.start());
        Ok(Box::new(Point { spec: self.spec.clone(), maze, walls: Walls::of(maze), at }))
    }

    fn tasks(&self, context: ContextId) -> Result<Vec<Task>, WorldError> {
        let goal = middle(maze(context)?.goal()).to_vec();
        Ok(vec![Task { name: "goal-1".to_owned(), reward: Reward::Goal { goal, tolerance: TOLERANCE } }])
    }

    fn places(&self, context: ContextId) -> Result<Vec<Task>, WorldError> {
        let task = |cell: usize| Task {
            name: format!("cell-{cell}"),
            reward: Reward::Goal { goal: middle(cell).to_vec(), tolerance: TOLERANCE },
        };
        Ok(maze(context)?.open_cells().map(task).collect())
    }

    fn describe(&self, context: ContextId) -> Result<serde_json::Value, WorldError> {
        let maze = maze(context)?;
        Ok(json!({
            "kind": "pointmass",
            "width": SIDE + 2,
            "height": SIDE + 2,
            "rows": maze.rows(),
            "cell_size": CELL,
            "origin": [-CELL, -CELL],
            "start": middle(maze.start()),
            "goals": [middle(maze.goal())],
        }))
    }

    fn oracle(&self, context: ContextId) -> Result<Option<Box<dyn Policy + '_>>, WorldError> {
        Ok(Some(Box::new(Follower::new(maze(context)?))))
    }

    fn ignorant(&self) -> Option<(&'static str, Box<dyn Policy + '_>)> {
        Some(("beeline", Box::new(Beeline::default())))
    }

    fn reward_tasks(
        &self,
        context: ContextId,
        rng: &mut Rng,
        each: usize,
    ) -> Result<Vec<SampledTask>, WorldError> {
        Ok(rewards::draw(maze(context)?, rng, each))
    }

    fn exact_beliefs(&self) -> Result<Option<Box<dyn ExactBeliefs + '_>>, WorldError> {
        let training = self.train.iter().map(|&context| maze(context)).collect::<Result<_, _>>()?;
        Ok(Some(Box::new(MapBeliefs::new(training))))
    }

    fn batch(&self, contexts: &[ContextId]) -> Result<Box<dyn BatchEnv>, WorldError> {
        let mazes = contexts.iter().map(|&context| maze(context)).collect::<Result<_, _>>()?;
        Ok(Box::new(PointBatch::new(self.spec.clone(), mazes)))
    }
}

/// One map, travelled by one point. Its position is the observation, bit for bit.
struct Point {
    spec: Arc<EnvSpec>,
    maze: Maze,
    walls: Walls,
    at: [f32; 2],
}

impl Env for Point {
    fn reset(&mut self, start: Start, rng: &mut Rng, obs: &mut [f32]) -> Result<(), WorldError> {
        self.at = begin(self.maze, &self.walls, start, rng);
        obs.copy_from_slice(&self.at);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, obs: &mut [f32]) -> Result<Step, WorldError> {
        match action {
            Action::Continuous(&[x, y]) if self.spec.action.contains(action) => {
                self.at = self.walls.slide(self.at, [x, y]);
            }
            _ => return Err(self.spec.action.reject(&self.spec.name, action)),
        }
        obs.copy_from_slice(&self.at);
        Ok(Step::default())
    }
}

/// Where an episode begins: around the middle of the start cell, or anywhere that the sphere fits, uniformly.
fn begin(maze: Maze, walls: &Walls, start: Start, rng: &mut Rng) -> [f32; 2] {
    let around = |cell, reach: f32, rng: &mut Rng| {
        middle(cell).map(|coordinate| coordinate + rng.random_range(-reach..=reach))
    };
    match start {
        Start::Fixed => around(maze.start(), START_NOISE, rng),
        Start::Random => loop {
            let cell = maze.open_cells().nth(rng.random_range(0..maze.count())).unwrap_or(maze.start());
            let at = around(cell, CELL / 2.0, rng);
            if walls.is_clear(at) {
                return at;
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EvalEpisode, rollout};
    use crate::registry::make;
    use proptest::prelude::*;

    #[test]
    fn every_map_can_be_solved_within_the_horizon() {
        let world = make("pointmass", &WorldConfig { seed: 3, train: Some(300), test: Some(0) }).unwrap();
        for &context in world.contexts(Split::Train) {
            let task = world.tasks(context).unwrap().remove(0);
            let episode = EvalEpisode { context, task, rng: rng::stream(1, "episode", &[context.0]) };
            let outcome =
                rollout(world.as_ref(), episode, world.oracle(context).unwrap().unwrap().as_mut()).unwrap();
            assert!(outcome.success, "{:?}", maze(context).unwrap().rows());
        }
    }

    #[test]
    fn places_are_the_open_cells_and_the_goal_is_one_of_them() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        for &context in world.contexts(Split::Test) {
            let places = world.places(context).unwrap();
            assert_eq!(places.len(), maze(context).unwrap().count());
            let goal = middle(maze(context).unwrap().goal());
            assert_eq!(places.iter().filter(|place| place.reward.reached(&goal)).count(), 1);
        }
    }

    #[test]
    fn observations_stay_within_the_stated_range() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        let spec = world.spec();
        let mut rng = rng::stream(0, "test", &[]);
        let mut obs = [0.0; 2];
        for &context in world.contexts(Split::Test) {
            let mut env = world.instantiate(context).unwrap();
            for corner in [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]] {
                env.reset(Start::Random, &mut rng, &mut obs).unwrap();
                for _ in 0..200 {
                    env.step(Action::Continuous(&corner), &mut obs).unwrap();
                    assert!(
                        spec.observation
                            .iter()
                            .zip(obs)
                            .all(|(dim, value)| (dim.low..=dim.high).contains(&value))
                    );
                }
            }
        }
    }

    #[test]
    fn actions_outside_the_box_are_refused() {
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        let mut env = world.instantiate(world.contexts(Split::Train)[0]).unwrap();
        for action in
            [Action::Discrete(0), Action::Continuous(&[0.0, 1.5]), Action::Continuous(&[f32::NAN, 0.0])]
        {
            let error = env.step(action, &mut [0.0; 2]).unwrap_err().to_string();
            assert!(error.contains("2 numbers from [-1.0, -1.0] to [1.0, 1.0]"), "{error}");
        }
    }

    #[test]
    fn too_many_maps_and_codes_of_no_map_are_refused() {
        let asked = WorldConfig { seed: 0, train: Some(MOST), test: Some(1) };
        let error = make("pointmass", &asked).err().unwrap().to_string();
        assert!(error.contains("at most 100000"), "{error}");
        let world = make("pointmass", &WorldConfig::default()).unwrap();
        assert!(world.instantiate(ContextId(0)).err().unwrap().to_string().contains("not the code of a map"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn training_and_test_maps_are_disjoint(seed: u64, train in 0_usize..40, test in 0_usize..40) {
            let config = WorldConfig { seed, train: Some(train), test: Some(test) };
            let world = make("pointmass", &config).unwrap();
            let both = world.contexts(Split::Train).iter().chain(world.contexts(Split::Test));
            prop_assert_eq!(both.collect::<HashSet<_>>().len(), train + test);
        }
    }
}
