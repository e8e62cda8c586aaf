//! Tells the program which revision it was built from, so that everything it writes can say so; and, with the feature `mujoco`,
//! where the shared library is.
//!
//! What is watched is what the answer depends on: where HEAD points, and the sources. Not the index: `git status` rewrites
//! it, and the program would be linked anew for nothing.

use std::path::Path;
use std::process::Command;

/// The root of the repository.
const ROOT: &str = "../..";
/// What the program is built of, from the root of the repository.
const SOURCES: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "configs",
    "crates/windvane-world/Cargo.toml",
    "crates/windvane-world/src",
    "crates/windvane/Cargo.toml",
    "crates/windvane/src",
    "crates/windvane-cli/Cargo.toml",
    "crates/windvane-cli/src",
];

fn main() {
    watch(Path::new("build.rs"));
    SOURCES.iter().for_each(|path| watch(&Path::new(ROOT).join(path)));
    // "unknown" outside a git checkout, for instance in a published crate.
    let revision = revision().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=WINDVANE_REVISION={revision}");
    if let (Some(_), Ok(folder)) =
        (std::env::var_os("CARGO_FEATURE_MUJOCO"), std::env::var("MUJOCO_DYNAMIC_LINK_DIR"))
    {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
}

/// The commit, and whether the sources are another's.
fn revision() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    // The log of HEAD grows with every commit, also where the branch has no file of its own yet.
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            watch(&Path::new(ROOT).join(path));
        }
    }
    let changed = git(&[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// What git answers at the root of the repository; nothing if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(["--no-optional-locks", "-C", ROOT]).args(arguments).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}

/// Runs this again when `path` changes; a path that is not there would do so always.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
