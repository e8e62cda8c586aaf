use super::*;
use crate::rng::stream;
use std::process::Command;

fn ant() -> Ant {
    Ant::new(&AntModel::load().unwrap(), Air::STILL, Integrator::RungeKutta).unwrap()
}

#[test]
fn a_thousand_steps_agree_with_gymnasium() {
    let python = std::env::var("WINDVANE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let probe = Command::new(&python).args(["-c", "import gymnasium.envs.mujoco"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        #[allow(clippy::print_stderr)]
        {
            eprintln!(
                "SKIPPED a_thousand_steps_agree_with_gymnasium: {python} lacks gymnasium, mujoco or imageio \
                (tests/python/requirements.txt; set WINDVANE_PYTHON)"
            );
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("walk");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/python/ant.py");
    let output = Command::new(&python).arg(script).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let numbers: Vec<f64> = std::fs::read(&file)
        .unwrap()
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| f64::from_le_bytes(*bytes))
        .collect();

    let mut ant = ant();
    let (start, walk) = numbers.split_at(POSITIONS + VELOCITIES);
    let (qpos, qvel) = start.split_at(POSITIONS);
    ant.place(qpos.try_into().unwrap(), qvel.try_into().unwrap());
    let steps = walk.chunks_exact(MOTORS + FULL + 1);
    assert_eq!((steps.len(), steps.remainder().len()), (1000, 0));
    let mut worst = [0.0_f64; 2];
    for step in steps {
        let (torques, seen) = step.split_at(MOTORS);
        let measured = ant.step(torques.try_into().unwrap()).unwrap();
        assert_eq!(ant.observation().count(), FULL);
        for (ours, theirs) in ant.observation().zip(seen) {
            worst[0] = worst[0].max((ours - theirs).abs());
        }
        worst[1] = worst[1].max((measured.reward() - seen[FULL]).abs());
    }
    assert!(worst[0] <= 1e-12 && worst[1] <= 1e-6, "largest differences {worst:?}");
}

#[test]
fn a_wrong_library_a_missing_and_an_edited_model_are_named() {
    let error = check_version("3.16.1").unwrap_err().to_string();
    assert_eq!(error, "the MuJoCo library is version 3.16.1, expected 3.17.0: run tools/mujoco/fetch");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ant.xml");
    let error = AntModel::load_from(&path).err().unwrap().to_string();
    assert!(error.contains("ant.xml: reading the ant's model (run tools/mujoco/fetch)"), "{error}");
    std::fs::write(&path, "<mujoco/>").unwrap();
    let error = AntModel::load_from(&path).err().unwrap().to_string();
    assert!(error.contains("ant.xml: checksum: is ") && error.contains("it was edited"), "{error}");
}

#[test]
fn a_diverging_simulation_is_an_error_and_the_next_start_is_sound() {
    let mut ant = ant();
    let mut qvel = [0.0; VELOCITIES];
    qvel[3] = 1e11;
    ant.place(&REST, &qvel);
    assert_eq!(ant.step([0.0; MOTORS]).unwrap_err(), "its velocities are no finite numbers any more");
    qvel[3] = 5e3;
    ant.place(&REST, &qvel);
    let error = ant.step([0.0; MOTORS]).unwrap_err();
    assert!(error.contains("beyond 1000") || error.contains("no finite numbers"), "{error}");
    ant.reset(&mut stream(0, "test", &[]));
    assert!(ant.step([0.0; MOTORS]).unwrap().healthy);
}

#[test]
fn the_mirror_image_of_a_walk_in_mirrored_wind_is_its_walk() {
    let model = AntModel::load().unwrap();
    let air = |side| Air { wind: [2.0, side * 3.0], viscosity: 0.05 };
    let [mut one, mut other] =
        [1.0, -1.0].map(|side| Ant::new(&model, air(side), Integrator::RungeKutta).unwrap());
    let mut rng = stream(1, "test", &[]);
    for _ in 0..60 {
        let torques: [f64; MOTORS] = std::array::from_fn(|_| rng.random_range(-1.0..=1.0));
        // Left and right legs change places; hips turn the other way, ankles as they did.
        let mirrored = [2, 3, 0, 1, 6, 7, 4, 5].map(|motor: usize| torques[motor] * [-1.0, 1.0][motor % 2]);
        let (a, b) = (one.step(torques).unwrap(), other.step(mirrored).unwrap());
        let far = (a.velocity[0] - b.velocity[0]).abs() + (a.velocity[1] + b.velocity[1]).abs();
        assert!(far < 1e-9, "{a:?} {b:?}");
    }
    assert!(one.positions()[1].abs() > 0.1, "the wind was felt");
}

#[test]
fn instances_of_one_model_have_winds_of_their_own() {
    let model = AntModel::load().unwrap();
    let blown = |wind| Ant::new(&model, Air { wind, viscosity: 0.05 }, Integrator::RungeKutta).unwrap();
    let mut ants = [blown([4.0, 0.0]), blown([-4.0, 0.0]), blown([0.0, 4.0])];
    for _ in 0..40 {
        ants.iter_mut().for_each(|ant| {
            ant.step([0.0; MOTORS]).unwrap();
        });
    }
    let at = ants.map(|ant| [ant.positions()[0], ant.positions()[1]]);
    assert!(at[0][0] > 0.3 && at[1][0] < -0.3 && at[2][1] > 0.3, "{at:?}");
}
