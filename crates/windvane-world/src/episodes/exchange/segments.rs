//! Where the episodes of a flat archive begin and end.

/// How the rows of an archive relate to transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A row is a transition and brings the observation that follows (`next_observations`).
    Transitions,
    /// A row is an observation; actions have as many rows, the last of each episode meaning nothing (OGBench).
    PaddedActions,
    /// A row is an observation; actions have one row less for each episode (windvane).
    ExactActions,
}

/// One episode: rows of observations and of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// First row of its observations.
    pub(super) observation: usize,
    /// First row of its actions.
    pub(super) action: usize,
    /// Number of transitions.
    pub(super) length: usize,
}

/// What tells where episodes end.
pub(super) enum Ends<'a> {
    /// Nothing: all rows are one episode.
    Nowhere,
    /// A flag on the last row of each.
    Flags(&'a [bool]),
    /// First transition (or row) of each, and the total.
    Offsets(&'a [usize]),
}

/// Cuts `rows` of observations and `actions` of actions into episodes.
pub(super) fn cut(
    rows: usize,
    actions: usize,
    has_next: bool,
    ends: &Ends<'_>,
) -> Result<(Layout, Vec<Segment>), String> {
    let bounds = match ends {
        Ends::Nowhere => vec![0, rows],
        Ends::Flags(flags) if flags.len() != rows => {
            return Err(format!("{} flags for {rows} observations", flags.len()));
        }
        Ends::Flags(flags) => {
            let after = flags.iter().enumerate().filter(|(_, last)| **last).map(|(row, _)| row + 1);
            let mut bounds: Vec<usize> = std::iter::once(0).chain(after).collect();
            // Logs are often cut off in the middle of an episode.
            if bounds.last() != Some(&rows) {
                bounds.push(rows);
            }
            bounds
        }
        Ends::Offsets(offsets) => offsets.to_vec(),
    };
    let episodes = bounds.len().saturating_sub(1);
    if episodes == 0 || bounds[0] != 0 || bounds.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err("the ends of episodes do not go up from 0".into());
    }
    let total = bounds[episodes];
    let by_transition = matches!(ends, Ends::Offsets(_));
    let layout = if has_next {
        Layout::Transitions
    } else if rows == actions {
        Layout::PaddedActions
    } else {
        Layout::ExactActions
    };
    // Whether `bounds` count transitions, or rows of observations with one more for each episode.
    let (expected_rows, expected_actions, extra) = match layout {
        Layout::Transitions => (total, total, 0),
        Layout::PaddedActions => (total, total, 1),
        Layout::ExactActions if by_transition => (total + episodes, total, 0),
        Layout::ExactActions => (total, total.saturating_sub(episodes), 1),
    };
    if rows != expected_rows || actions != expected_actions {
        return Err(format!(
            "{rows} observations and {actions} actions do not fit {episodes} episodes that end at {total}; \
             expected {expected_rows} and {expected_actions}"
        ));
    }
    let segments = bounds.windows(2).enumerate().map(|(episode, pair)| {
        let length = (pair[1] - pair[0]).checked_sub(extra).filter(|&length| length > 0);
        let length = length.ok_or(format!("episode {episode} has one observation and no transition"))?;
        let (observation, action) = match layout {
            Layout::Transitions | Layout::PaddedActions => (pair[0], pair[0]),
            Layout::ExactActions if by_transition => (pair[0] + episode, pair[0]),
            Layout::ExactActions => (pair[0], pair[0] - episode),
        };
        Ok(Segment { observation, action, length })
    });
    Ok((layout, segments.collect::<Result<_, String>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [Segment; 2] =
        [Segment { observation: 0, action: 0, length: 2 }, Segment { observation: 3, action: 3, length: 1 }];

    #[test]
    fn every_layout_of_the_field_is_cut_into_the_same_episodes() {
        let flags = [false, false, true, false, true];
        let ogbench = cut(5, 5, false, &Ends::Flags(&flags)).unwrap();
        assert_eq!(ogbench, (Layout::PaddedActions, TWO.to_vec()));
        assert_eq!(cut(5, 5, false, &Ends::Offsets(&[0, 3, 5])).unwrap(), ogbench);

        let exact = [TWO[0], Segment { action: 2, ..TWO[1] }];
        assert_eq!(cut(5, 3, false, &Ends::Flags(&flags)).unwrap(), (Layout::ExactActions, exact.to_vec()));
        assert_eq!(
            cut(5, 3, false, &Ends::Offsets(&[0, 2, 3])).unwrap(),
            (Layout::ExactActions, exact.to_vec())
        );

        let rows = [TWO[0], Segment { observation: 2, action: 2, length: 1 }];
        let d4rl = cut(3, 3, true, &Ends::Flags(&[false, true, true])).unwrap();
        assert_eq!(d4rl, (Layout::Transitions, rows.to_vec()));
        assert_eq!(cut(3, 3, true, &Ends::Offsets(&[0, 2, 3])).unwrap(), d4rl);

        let alone = cut(3, 2, false, &Ends::Nowhere).unwrap();
        assert_eq!(alone, (Layout::ExactActions, vec![TWO[0]]));
    }

    #[test]
    fn an_episode_cut_off_at_the_end_still_counts() {
        let (_, segments) = cut(5, 5, false, &Ends::Flags(&[false, false, true, false, false])).unwrap();
        assert_eq!(segments, TWO);
    }

    #[test]
    fn rows_that_do_not_add_up_are_refused() {
        for (rows, actions, next, ends) in [
            (5, 4, false, Ends::Offsets(&[0, 2, 3])),
            (5, 3, false, Ends::Offsets(&[0, 3, 2])),
            (5, 3, false, Ends::Offsets(&[1, 2, 3])),
            (5, 3, false, Ends::Offsets(&[])),
            (5, 3, true, Ends::Nowhere),
            (5, 5, false, Ends::Flags(&[true; 4])),
            (2, 2, false, Ends::Flags(&[true, true])),
            (0, 0, false, Ends::Nowhere),
        ] {
            assert!(cut(rows, actions, next, &ends).is_err(), "{rows} {actions}");
        }
    }
}
