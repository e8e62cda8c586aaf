//! What people look at: figures, and one page that needs nothing but itself.

pub mod bounds;
pub mod chart;
pub mod cones;
pub mod curves;
pub mod directions;
pub mod figure;
pub mod gaits;
pub mod hidden;
pub mod inside;
pub mod page;
pub mod plane;
pub mod polar;
pub mod published;
pub mod qmap;
pub mod results;
mod story;
pub mod summary;
pub mod tables;
pub mod views;

/// Figures that look into worlds, data and agents: the name of each, and what it shows.
pub const INSIDE: &[(&str, &str)] = &[
    ("layouts", "Some of the layouts that the data comes from."),
    ("occupancy", "How often the data visits each place."),
    (
        "qmap",
        "What each method thinks of an unseen layout, beside the exact answer: value of each cell and greedy moves.",
    ),
    (
        "directions",
        "Interference: random task vectors at one state, coloured by the greedy move, in one layout, in another, and where \
         both are taken for one.",
    ),
    (
        "beliefs",
        "Beliefs h after random trajectories in several layouts, in their first two principal components.",
    ),
    (
        "hidden",
        "What a linear map reads off the belief of ants: the direction of the wind, as a circle, or which legs turn the wrong way \
         round, as a confusion matrix.",
    ),
    (
        "gaits",
        "Ants in a context that nobody learned from, from what they see of themselves: Belief-FB asked for several things, FB and the \
         expert for the first. Legs that turn the wrong way round, and the wind, are drawn as they are; only the expert is given them.",
    ),
    ("cones", "Task vectors around beliefs, before and after the belief is trained."),
    (
        "theory",
        "Theorem 1, computed: the error of the best fit grows with the number of layouts and falls when they are split into \
         cones; the true regret of each run lies below its bound.",
    ),
];
