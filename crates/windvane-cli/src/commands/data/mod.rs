//! `windvane data`: look at data sets, check them, exchange them, draw them.

mod check;
mod export;
pub(super) mod import;
mod info;
mod plot;

use clap::Subcommand;

/// Looks at data sets, checks them, exchanges them and draws them.
#[derive(Subcommand)]
pub(crate) enum Data {
    Info(info::Info),
    Check(check::Check),
    Export(export::Export),
    Import(import::Import),
    Plot(plot::Plot),
}

impl Data {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Info(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Import(command) => command.run(),
            Self::Plot(command) => command.run(),
        }
    }
}
