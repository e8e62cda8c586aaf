//! Experts at work: as policies that are given a context, and as those that data are collected from.

use super::pupil::CHECKPOINTS;
use super::{Config, Gait, Pass, Progress, file, gait, gauss, ppo, sac};
use crate::collect::{Actor, Behaviour, Learner};
use crate::env::{ActionBuf, ActionSpace, Cmdp, ContextId, Split};
use crate::error::WorldError;
use crate::mujoco::{Air, AntModel, Gears, Hidden, MOTORS, POSTURE};
use crate::protocol::Policy;
use crate::reward::Task;
use crate::rng::Rng;
use rand::RngExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A trained expert: its policy, and what it was like at earlier times.
#[derive(Clone, Debug, PartialEq)]
pub struct Expert {
    /// From the earliest to the final one.
    gaits: Arc<Vec<Gait>>,
    /// Whether data are to be of the final policy alone, without noise.
    pure: bool,
}

/// The usual number of updates; SAC's take the CPU time of PPO's.
fn updates(learner: Learner) -> usize {
    match learner {
        Learner::Ppo => 300,
        Learner::Sac | Learner::SacTargets => 80,
    }
}

/// The expert for `world`, out of the file beside the data set `out`; trained and written there if there is none.
///
/// Training takes minutes; killed, it goes on from a file beside that one, and ends with the same bytes.
pub(crate) fn prepare(
    world: &dyn Cmdp,
    seed: u64,
    (learner, pure): (Learner, bool),
    out: &Path,
) -> Result<Expert, WorldError> {
    let path = beside(out);
    if !path.exists() {
        let config = Config { seed, updates: updates(learner), learner };
        let part = path.with_extension("expert.part");
        train_from(world, &config, Some(&part), &mut |_| {})?.save(&path)?;
        // Of no use any more; left where it cannot be removed.
        let _gone = std::fs::remove_file(&part);
    }
    let expert = Expert::load(&path)?;
    let found = expert.learner();
    if found != learner {
        let problem = format!("was taught by {found}, not by {learner}; remove it to train anew");
        return Err(WorldError::data(&path, "first line", problem));
    }
    Ok(Expert { pure, ..expert })
}

/// `data/ant-wind` has its expert in `data/ant-wind.expert`.
fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".expert");
    out.with_file_name(name)
}

/// Trains an expert in the air of `world`'s training contexts. It never meets those that are held out.
pub fn train(
    world: &dyn Cmdp,
    config: &Config,
    progress: &mut dyn FnMut(Progress),
) -> Result<Expert, WorldError> {
    train_from(world, config, None, progress)
}

/// The same, saved at `part` now and then, from where it goes on.
pub(super) fn train_from(
    world: &dyn Cmdp,
    config: &Config,
    part: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Expert, WorldError> {
    let mut airs: Vec<Air> = Vec::new();
    for &context in world.contexts(Split::Train) {
        let air = hidden(world, context)?.air();
        if !airs.contains(&air) {
            airs.push(air);
        }
    }
    if airs.is_empty() || config.updates == 0 {
        return Err(WorldError::Invalid(format!("{}: nothing to train an expert on", world.spec().name)));
    }
    let learn = if config.learner == Learner::Ppo { ppo::learn } else { sac::learn };
    let gaits = learn(&AntModel::load()?, &airs, config, part, progress)?;
    Ok(Expert { gaits: Arc::new(gaits), pure: false })
}

/// What is hidden in a context of an ant.
fn hidden(world: &dyn Cmdp, context: ContextId) -> Result<Hidden, WorldError> {
    serde_json::from_value(world.describe(context)?)
        .map_err(|_| WorldError::Invalid(format!("{}: there are experts for ants alone", world.spec().name)))
}

impl Expert {
    /// Reads an expert from a file.
    pub fn load(path: &Path) -> Result<Self, WorldError> {
        Ok(Self { gaits: Arc::new(file::load(path)?), pure: false })
    }

    /// The expert whom the data set at `data` comes from; nothing where there is none.
    pub fn beside(data: &Path) -> Result<Option<Self>, WorldError> {
        let path = beside(data);
        path.exists().then(|| Self::load(&path)).transpose()
    }

    /// Writes it to a file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), WorldError> {
        file::save(path, &self.gaits)
    }

    /// Who taught it.
    pub fn learner(&self) -> Learner {
        self.gaits[0].learner
    }

    /// The expert as it was, after these shares of its training; the last is as it is.
    pub fn stages(&self) -> impl Iterator<Item = (f32, Self)> {
        let until = |count: usize| Self { gaits: Arc::new(self.gaits[..count].to_vec()), pure: self.pure };
        CHECKPOINTS.into_iter().zip((1..=self.gaits.len()).map(until))
    }

    /// The final policy, given the context `given`: the true one, or any other.
    pub fn policy(&self, given: &Hidden) -> impl Policy + use<> {
        Walker::new(self.gaits.clone(), given)
    }

    /// Who believes that there is neither wind nor fault.
    pub fn told_nothing(&self) -> impl Policy + use<> {
        self.policy(&NOTHING)
    }
}

/// Neither wind nor fault.
const NOTHING: Hidden = Hidden { wind: [0.0; 2], viscosity: 0.0, gears: Gears::HEALTHY };

/// What an expert is about to do. The body has four legs alike, so that who walks ahead can walk to every side, by taking another
/// side for the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// Walking so many right angles to the left of the world's x.
    Walk(usize),
    /// Standing: joint targets of zero.
    Stand,
}

impl Aim {
    /// The one that serves a task best, of those there are.
    fn of(task: &Task) -> Self {
        match task.name.as_str() {
            "left" => Self::Walk(1),
            "backward" => Self::Walk(2),
            "right" => Self::Walk(3),
            "stand" | "speed-1" => Self::Stand,
            _ => Self::Walk(0),
        }
    }

    /// One to collect data with.
    fn draw(rng: &mut Rng) -> Self {
        let draw = rng.random::<f32>();
        match AHEAD + STANDING {
            _ if draw < AHEAD => Self::Walk(0),
            share if draw < share => Self::Stand,
            _ => Self::Walk(rng.random_range(1..4)),
        }
    }
}

/// An expert who walks.
struct Walker {
    gaits: Arc<Vec<Gait>>,
    /// Which of them walks.
    chosen: usize,
    aim: Aim,
    wind: [f32; 2],
    gears: Gears,
    /// Deviation of targets, of its own kind and of equal size for all, and of torques.
    noise: Noise,
    input: Vec<f32>,
    pass: Pass,
}

/// What is added to what the policy would do.
#[derive(Clone, Copy, Default)]
struct Noise {
    /// Of the deviation that the policy learned with.
    own: f32,
    /// Of joint targets, or of what SAC squashes.
    targets: f32,
    /// Of torques.
    torques: f32,
}

impl Walker {
    fn new(gaits: Arc<Vec<Gait>>, given: &Hidden) -> Self {
        let chosen = gaits.len() - 1;
        let wind = given.wind.map(|w| w as f32);
        let (noise, input, pass) = Default::default();
        Self { gaits, chosen, aim: Aim::Walk(0), wind, gears: given.gears, noise, input, pass }
    }

    fn walk(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        let policy = &self.gaits[self.chosen];
        let (mut view, mut wind) = (std::array::from_fn::<f32, POSTURE, _>(|place| obs[place]), self.wind);
        let turns = if let Aim::Walk(turns) = self.aim { turns } else { 0 };
        for _ in 0..turns {
            (view, wind) = (gait::turned(&view), gait::turn(wind));
        }
        let walks = self.aim != Aim::Stand;
        let [mut choice, deviations] = match self.aim {
            Aim::Walk(_) => policy.choices(&view, wind, &mut self.input, &mut self.pass),
            Aim::Stand => [[0.0; MOTORS], policy.noise],
        };
        let Noise { own, targets: off, torques } = self.noise;
        if own + off > 0.0 {
            let deviations = deviations.iter();
            choice.iter_mut().zip(deviations).for_each(|(t, d)| *t += (own * d).hypot(off) * gauss(rng));
        }
        let turned = if walks { policy.torques(&view, &choice) } else { gait::torques(&view, &choice) };
        let mut turned = (0..turns).fold(turned, |torques, _| gait::turn_back_torques(torques));
        if torques > 0.0 {
            turned.iter_mut().for_each(|t| *t = (*t + torques * gauss(rng)).clamp(-1.0, 1.0));
        }
        let commands = self.gears.commands(turned.map(f64::from));
        if let ActionBuf::Continuous(values) = action {
            values.iter_mut().zip(commands).for_each(|(value, command)| *value = command as f32);
        }
    }
}

impl Policy for Walker {
    fn begin(&mut self, task: &Task, _: &[f32]) -> Result<(), WorldError> {
        self.aim = Aim::of(task);
        Ok(())
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        self.walk(obs, rng, action);
    }
}

impl Behaviour for Expert {
    fn name(&self) -> String {
        let kind = self.learner().expert(self.pure);
        format!("{kind} {:016x}", file::fingerprint(&self.gaits))
    }

    fn actor(&self, world: &dyn Cmdp, context: ContextId) -> Result<Box<dyn Actor>, WorldError> {
        let given = hidden(world, context)?;
        let walker = Walker::new(self.gaits.clone(), &given);
        if self.pure {
            return Ok(Box::new(Pure(walker)));
        }
        Ok(Box::new(Mixed { given, walker, space: world.spec().action.clone(), held: None }))
    }
}

/// The paper's data: the final policy, without noise.
struct Pure(Walker);

impl Actor for Pure {
    fn begin(&mut self, _: &mut Rng) {}

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        self.0.walk(obs, rng, action);
    }
}

/// Data of mixed quality and of several aims, episode by episode; aims change now and then. Where experts alone acted, what they do would give the context away, and
/// nothing could be learned of how an action's effect depends on it: so some know nothing, and some do not know how to walk.
struct Mixed {
    given: Hidden,
    walker: Walker,
    space: ActionSpace,
    /// Torques that last for a while, in episodes of chance.
    held: Option<ActionBuf>,
}

/// Shares of episodes: the final policy; an earlier one; the final one given no context. The rest is chance.
const SHARES: [f32; 3] = [0.45, 0.35, 0.1];
/// Mean steps that torques of chance last.
const HELD: usize = 3;
/// Shares of aims: walking ahead, and standing. The rest walks to one of the other three sides. Whoever only ever saw ants walk
/// ahead cannot be asked for anything else.
const AHEAD: f32 = 0.3;
const STANDING: f32 = 0.15;
/// Mean steps that an aim lasts.
const AIMED: usize = 128;

impl Actor for Mixed {
    fn begin(&mut self, rng: &mut Rng) {
        let [last, earlier, ignorant] = SHARES;
        let draw = rng.random::<f32>();
        self.walker = Walker::new(self.walker.gaits.clone(), &self.given);
        self.held = None;
        if draw < last {
            self.walker.noise.torques = rng.random_range(0.05..=0.15);
        } else if draw < last + earlier {
            self.walker.chosen = rng.random_range(0..(self.walker.gaits.len() - 1).max(1));
            self.walker.noise = Noise {
                own: 1.0,
                targets: rng.random_range(0.0..=0.6),
                torques: rng.random_range(0.1..=0.2),
            };
        } else if draw < last + earlier + ignorant {
            self.walker = Walker::new(self.walker.gaits.clone(), &NOTHING);
            self.walker.noise.torques = 0.1;
        } else {
            let mut torques = self.space.buffer();
            self.space.sample(rng, &mut torques);
            self.held = Some(torques);
        }
        self.walker.aim = Aim::draw(rng);
    }

    fn act(&mut self, obs: &[f32], rng: &mut Rng, action: &mut ActionBuf) {
        let Some(held) = &mut self.held else {
            if rng.random_range(0..AIMED) == 0 {
                self.walker.aim = Aim::draw(rng);
            }
            return self.walker.walk(obs, rng, action);
        };
        if rng.random_range(0..HELD) == 0 {
            self.space.sample(rng, held);
        }
        action.clone_from(held);
    }
}
