//! Who wrote this: recorded in everything the program writes.

/// Name, version and revision of this program.
pub(crate) const GENERATOR: &str =
    concat!("windvane ", env!("CARGO_PKG_VERSION"), " (", env!("WINDVANE_REVISION"), ")");

/// The revision alone.
pub(crate) const REVISION: &str = env!("WINDVANE_REVISION");
