//! One file per command; adding one is a file, a line in the enum and a line in `run`.

mod ceilings;
mod collect;
mod data;
mod envs;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Envs(envs::Envs),
    Ceilings(ceilings::Ceilings),
    Collect(collect::Collect),
    #[command(subcommand)]
    Data(data::Data),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Envs(command) => command.run(),
            Self::Ceilings(command) => command.run(),
            Self::Collect(command) => command.run(),
            Self::Data(command) => command.run(),
        }
    }
}
