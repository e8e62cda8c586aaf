//! One file per command; adding one is a file, a line in the enum and a line in `run`.

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {}
    }
}
