//! Pictures of data sets.

use crate::synth::Shape;
use tempfile::tempdir;
use windvane_world::collect::{BehaviourPolicy, CollectConfig, collect};
use windvane_world::episodes::Episodes;
use windvane_world::picture::{Picture, Subject, layouts, occupancy, trajectories};
use windvane_world::registry::{WORLDS, WorldConfig, make};
use windvane_world::{Split, Start};

fn collected(env: &str, folder: &std::path::Path) -> Episodes {
    let world = make(env, &WorldConfig::default()).unwrap();
    let config = CollectConfig {
        contexts: world.contexts(Split::Train)[..2].to_vec(),
        episodes: 3,
        length: 50,
        start: Start::Fixed,
        seed: 0,
    };
    let policy = BehaviourPolicy::default_for(&world.spec().action);
    collect(&*world, &policy, &config, "tests", &folder.join(env), &|_| {}).unwrap()
}

fn all(subject: &Subject<'_>) -> [Picture; 3] {
    [layouts(subject).unwrap(), trajectories(subject, 3), occupancy(subject)]
}

#[test]
fn every_world_is_drawn_the_same_every_time_and_renders() {
    for entry in WORLDS {
        let folder = tempdir().unwrap();
        let data = collected(entry.name, folder.path());
        let subject = Subject::new(&data, 12, None).unwrap();
        if data.meta().plan.contexts[0].about.get("rows").is_none() {
            // Not a maze: where it was can be drawn, a map cannot.
            trajectories(&subject, 3).png(1.0).unwrap();
            occupancy(&subject).png(1.0).unwrap();
            continue;
        }
        let pictures = all(&subject);
        assert_eq!(pictures, all(&subject));
        for picture in &pictures {
            let png = picture.png(1.0).unwrap();
            assert!(png.starts_with(b"\x89PNG") && png == picture.png(1.0).unwrap());
            let context = data.privileged_context_labels().unwrap().of(0).0;
            assert!(picture.svg().contains(&format!(">context {context}<")), "panels have titles");
            assert_eq!(picture.svg().matches("<text").count(), picture.svg().matches("</text>").count());
        }
        // Two contexts, each with its start; every goal of every context.
        let goals: usize = (0..2)
            .map(|place| {
                let world = make(entry.name, &WorldConfig::default()).unwrap();
                world.tasks(world.contexts(Split::Train)[place]).unwrap().len()
            })
            .sum();
        assert_eq!(pictures[0].svg().matches("<polygon").count(), goals + 1, "goals, and one in the legend");
        assert_eq!(pictures[1].svg().matches("<polyline").count(), 6, "three episodes in two panels");
    }
}

#[test]
fn own_data_is_drawn_in_the_plane_of_any_two_dimensions() {
    let folder = tempdir().unwrap();
    let shape = Shape { dims: 3, ..Shape::plain() };
    let data = shape.write(&folder.path().join("data"));
    let subject = Subject::new(&data, 12, Some(("d2", "d0"))).unwrap();
    for picture in [trajectories(&subject, 8), occupancy(&subject)] {
        assert!(picture.svg().contains(">d2<") && picture.svg().contains(">d0<"), "axes are named");
        picture.png(2.0).unwrap();
    }
    let error = layouts(&subject).unwrap_err().to_string();
    assert!(error.contains("no maps are recorded"), "{error}");
    let error = Subject::new(&data, 12, Some(("d2", "speed"))).err().unwrap().to_string();
    assert!(error.contains("unknown dimension \"speed\"; known: d0, d1, d2"), "{error}");
    let flat = Shape { dims: 1, ..Shape::plain() }.write(&folder.path().join("flat"));
    let error = Subject::new(&flat, 12, None).err().unwrap().to_string();
    assert!(error.contains("a picture needs two"), "{error}");
}

#[test]
fn pictures_are_saved_by_the_ending_of_their_name_and_never_over_another() {
    let folder = tempdir().unwrap();
    let data = Shape::plain().write(&folder.path().join("data"));
    let picture = occupancy(&Subject::new(&data, 4, None).unwrap());
    let (svg, png) = (folder.path().join("a.svg"), folder.path().join("a.png"));
    picture.save(&svg, 2.0).unwrap();
    picture.save(&png, 2.0).unwrap();
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), picture.svg());
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    let error = picture.save(&svg, 2.0).unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
    let error = picture.save(&folder.path().join("a.jpg"), 2.0).unwrap_err().to_string();
    assert!(error.contains("neither in .svg nor in .png"), "{error}");
    for scale in [0.0, -1.0, 1e6, f32::NAN, f32::INFINITY] {
        assert!(picture.png(scale).unwrap_err().to_string().contains("pixels"), "{scale}");
    }
}
