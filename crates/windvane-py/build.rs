//! Flags of the linker: on macOS, that symbols come with the interpreter; with the feature `mujoco`, where
//! the shared library is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        println!("cargo::rustc-cdylib-link-arg=-undefined");
        println!("cargo::rustc-cdylib-link-arg=dynamic_lookup");
    }
    if let (Some(_), Ok(folder)) =
        (std::env::var_os("CARGO_FEATURE_MUJOCO"), std::env::var("MUJOCO_DYNAMIC_LINK_DIR"))
    {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,{folder}");
    }
}
