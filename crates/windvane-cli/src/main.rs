//! The `windvane` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(windvane_cli::run(std::env::args_os()))
}
