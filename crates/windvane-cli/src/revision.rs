//! Who wrote this: recorded in everything the program writes.

use windvane::device::{DeviceName, instructions};

/// Name, version and revision of this program.
pub const GENERATOR: &str =
    concat!("windvane ", env!("CARGO_PKG_VERSION"), " (", env!("WINDVANE_REVISION"), ")");

/// The revision alone.
pub const REVISION: &str = env!("WINDVANE_REVISION");

/// Version and revision.
pub(crate) const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WINDVANE_REVISION"), ")");

/// What `--version` tells: all that decides what the program can do and how fast.
pub(crate) fn long() -> String {
    let devices = DeviceName::ALL.into_iter().filter(|device| device.is_compiled_in());
    let devices: Vec<String> = devices.map(|device| device.to_string()).collect();
    format!(
        "{}\nrevision: {REVISION}\ndevices compiled in: {}\ninstruction set: {}",
        env!("CARGO_PKG_VERSION"),
        devices.join(", "),
        instructions()
    )
}
