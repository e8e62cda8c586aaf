//! Tells the program which revision it was built from, so that everything it writes can say so; and, with the feature `mujoco`,
//! where the shared library is.

use std::process::Command;

fn main() {
    // "unknown" outside a git checkout, for instance in a published crate.
    let revision = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo::rustc-env=WINDVANE_REVISION={revision}");
    if let (Some(_), Ok(folder)) =
        (std::env::var_os("CARGO_FEATURE_MUJOCO"), std::env::var("MUJOCO_DYNAMIC_LINK_DIR"))
    {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    // A commit moves the index; an edit of any crate may make the tree dirty (and rebuilds this one anyway).
    for path in ["../../.git/index", "../../.git/HEAD", ".."] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
