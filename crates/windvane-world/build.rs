//! With the feature `mujoco`: tells tests and examples where the shared library is, and the crate where the models are.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    if std::env::var_os("CARGO_FEATURE_MUJOCO").is_none() {
        return;
    }
    // Without it, the library was found by the system's own means, and `WINDVANE_MUJOCO` must say where the models are.
    let folder = std::env::var("MUJOCO_DYNAMIC_LINK_DIR").unwrap_or_default();
    println!("cargo::rustc-env=WINDVANE_MUJOCO_DIR={folder}");
    if !folder.is_empty() {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
