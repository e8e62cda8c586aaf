//! The worlds there are, by name.

use crate::env::Cmdp;
use crate::error::WorldError;
use crate::grid::{GridWorld, doors, four_rooms};
#[cfg(feature = "mujoco")]
use crate::mujoco::{AntWorld, Family};
use crate::pendulum::Pendulum;
use crate::pointmass::Pointmass;

/// Which contexts a world is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldConfig {
    /// Decides which contexts are drawn.
    pub seed: u64,
    /// Number of training contexts; the paper's by default.
    pub train: Option<usize>,
    /// Number of held-out contexts; the paper's by default.
    pub test: Option<usize>,
}

/// One world of the registry.
pub struct Entry {
    /// Its name, as the command line spells it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What its contexts are called, and how many there are to draw from.
    pub universe: &'static str,
    /// The paper's number of training and held-out contexts; the usual number where the paper has none.
    pub paper_sizes: [usize; 2],
    /// The paper's number, or the usual one, of episodes in each of so many training contexts.
    pub paper_episodes: fn(contexts: usize) -> usize,
    build: Build,
}

/// Makes a world with so many training and held-out contexts.
type Build = fn(&WorldConfig, [usize; 2]) -> Result<Box<dyn Cmdp>, WorldError>;

/// Every world there is.
pub const WORLDS: &[Entry] = &[
    Entry {
        name: "doors",
        about: "9x9 grid, two inner walls with one door each",
        universe: "49 layouts",
        paper_sizes: [24, 25],
        paper_episodes: |_| 500,
        build: |config, sizes| Ok(Box::new(GridWorld::new(&doors::FAMILY, config, sizes)?)),
    },
    Entry {
        name: "four-rooms",
        about: "11x11 grid, four rooms, one door between each two that adjoin",
        universe: "4,900 layouts",
        paper_sizes: [30, 20],
        paper_episodes: |_| 250,
        build: |config, sizes| Ok(Box::new(GridWorld::new(&four_rooms::FAMILY, config, sizes)?)),
    },
    Entry {
        name: "pointmass",
        about: "a point that slides through a random 8x8 maze",
        universe: "random maps",
        paper_sizes: [30, 20],
        // A million transitions, episodes of 250.
        paper_episodes: |contexts| 4000_usize.div_ceil(contexts.max(1)),
        build: |config, sizes| Ok(Box::new(Pointmass::new(config, sizes)?)),
    },
    Entry {
        name: "pendulum",
        about: "a pendulum of hidden mass and length whose motor may be reversed (beyond the paper)",
        universe: "3,721 pendulums, two signs",
        paper_sizes: [40, 20],
        // 40,000 transitions, episodes of 100.
        paper_episodes: |contexts| 400_usize.div_ceil(contexts.max(1)),
        build: |config, sizes| Ok(Box::new(Pendulum::new(config, sizes)?)),
    },
    #[cfg(feature = "mujoco")]
    Entry {
        name: "ant-wind",
        about: "MuJoCo's ant in wind of 4 m/s from a hidden direction",
        universe: "20 directions",
        paper_sizes: [16, 4],
        paper_episodes: |_| 200,
        build: |_, sizes| {
            let family = Family::Wind { strength: 4.0, contacts: false };
            Ok(Box::new(AntWorld::new("ant-wind", family, sizes)?))
        },
    },
    #[cfg(feature = "mujoco")]
    Entry {
        name: "ant-wind-contacts",
        about: "the same, with contact forces observed",
        universe: "20 directions",
        paper_sizes: [16, 4],
        paper_episodes: |_| 200,
        build: |_, sizes| {
            let family = Family::Wind { strength: 4.0, contacts: true };
            Ok(Box::new(AntWorld::new("ant-wind-contacts", family, sizes)?))
        },
    },
    #[cfg(feature = "mujoco")]
    Entry {
        name: "ant-wind-6",
        about: "wind of 6 m/s, where a wrong belief is costly (beyond the paper)",
        universe: "20 directions",
        paper_sizes: [16, 4],
        paper_episodes: |_| 200,
        build: |_, sizes| {
            let family = Family::Wind { strength: 6.0, contacts: false };
            Ok(Box::new(AntWorld::new("ant-wind-6", family, sizes)?))
        },
    },
    #[cfg(feature = "mujoco")]
    Entry {
        name: "ant-fault",
        about: "an ant some of whose legs turn the wrong way round; two of them are unseen (beyond the paper)",
        universe: "16 patterns",
        paper_sizes: [10, 6],
        paper_episodes: |_| 16,
        build: |_, sizes| Ok(Box::new(AntWorld::new("ant-fault", Family::FlipTwo, sizes)?)),
    },
    #[cfg(feature = "mujoco")]
    Entry {
        name: "ant-fault-more",
        about: "the same legs; more than two reversed are unseen",
        universe: "16 patterns",
        paper_sizes: [11, 5],
        paper_episodes: |_| 16,
        build: |_, sizes| Ok(Box::new(AntWorld::new("ant-fault-more", Family::FlipMany, sizes)?)),
    },
    #[cfg(feature = "mujoco")]
    Entry {
        name: "ant-fault-rotated",
        about: "an ant whose legs listen to each other's commands, as they are or reversed",
        universe: "8 patterns",
        paper_sizes: [6, 2],
        paper_episodes: |_| 16,
        build: |_, sizes| Ok(Box::new(AntWorld::new("ant-fault-rotated", Family::Rotate, sizes)?)),
    },
];

/// Makes the world called `name`.
pub fn make(name: &str, config: &WorldConfig) -> Result<Box<dyn Cmdp>, WorldError> {
    if cfg!(not(feature = "mujoco")) && name.starts_with("ant-") {
        return Err(WorldError::Invalid(format!(
            "{name} needs MuJoCo, which this program was built without: run tools/mujoco/fetch, then build with \
             --features mujoco (docs/mujoco.md)"
        )));
    }
    let entry = WORLDS.iter().find(|entry| entry.name == name).ok_or_else(|| WorldError::Unknown {
        kind: "environment",
        name: name.to_owned(),
        known: WORLDS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })?;
    let [train, test] = entry.paper_sizes;
    (entry.build)(config, [config.train.unwrap_or(train), config.test.unwrap_or(test)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Split;

    #[test]
    fn the_contexts_of_a_seed_never_change() {
        for (name, train, test) in [
            ("doors", [22, 2, 12], [0, 20, 35]),
            ("four-rooms", [2438, 4896, 850], [3175, 1995, 1251]),
            (
                "pointmass",
                [49_348_031_683, 52_072_928_758, 37_175_143_386],
                [56_888_446_923, 43_687_394_235, 68_376_280_951],
            ),
        ] {
            let world = make(name, &WorldConfig::default()).unwrap();
            let first =
                |split| world.contexts(split)[..3].iter().map(|context| context.0).collect::<Vec<_>>();
            assert_eq!((first(Split::Train), first(Split::Test)), (train.to_vec(), test.to_vec()), "{name}");
        }
    }

    #[test]
    fn every_name_makes_its_world_with_the_sizes_of_the_paper() {
        for entry in WORLDS {
            let world = make(entry.name, &WorldConfig::default()).unwrap();
            let sizes = [Split::Train, Split::Test].map(|split| world.contexts(split).len());
            assert_eq!((world.spec().name.as_str(), sizes), (entry.name, entry.paper_sizes));
        }
        let error = make("maze", &WorldConfig::default()).err().unwrap().to_string();
        let known = "unknown environment \"maze\"; known: doors, four-rooms, pointmass, pendulum";
        assert!(error.starts_with(known), "{error}");
    }

    #[test]
    #[cfg(not(feature = "mujoco"))]
    fn an_ant_without_mujoco_says_how_to_get_it() {
        let error = make("ant-wind", &WorldConfig::default()).err().unwrap().to_string();
        assert!(error.contains("run tools/mujoco/fetch, then build with --features mujoco"), "{error}");
    }
}
