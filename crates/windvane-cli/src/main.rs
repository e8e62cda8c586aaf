//! The `windvane` command.

mod choice;
mod commands;
mod interrupt;
mod output;
mod progress;
mod revision;
mod settings;
mod table;
mod trained;
mod watch;

use clap::Parser;
use std::process::ExitCode;

/// Behavioural foundation models that sense hidden dynamics and act zero-shot.
#[derive(Parser)]
#[command(name = "windvane", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::fail(&error);
            ExitCode::FAILURE
        }
    }
}
