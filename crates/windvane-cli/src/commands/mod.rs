//! One file per command; adding one is a file, a line in the enum and a line in `run`.

mod adapt;
mod bench;
mod ceilings;
mod collect;
mod compare;
mod completions;
mod context;
mod data;
mod doctor;
mod envs;
mod evaluate;
mod export;
mod figure;
mod man;
mod quickstart;
mod report;
mod reproduce;
mod run;
mod runs;
mod simulate;
mod status;
mod train;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Quickstart(quickstart::Quickstart),
    Envs(envs::Envs),
    Ceilings(ceilings::Ceilings),
    Collect(collect::Collect),
    #[command(subcommand)]
    Data(data::Data),
    Import(data::import::Import),
    Train(train::Train),
    Runs(runs::Runs),
    Compare(compare::Compare),
    Eval(evaluate::Eval),
    Context(context::Context),
    Doctor(doctor::Doctor),
    Reproduce(reproduce::Reproduce),
    Run(run::RunUnit),
    Status(status::Status),
    Simulate(simulate::Simulate),
    Report(report::Report),
    Figure(figure::Figure),
    Export(export::Export),
    Adapt(adapt::Adapt),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Manual),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Quickstart(command) => command.run(),
            Self::Envs(command) => command.run(),
            Self::Ceilings(command) => command.run(),
            Self::Collect(command) => command.run(),
            Self::Data(command) => command.run(),
            Self::Import(command) => command.run(),
            Self::Train(command) => command.run(),
            Self::Runs(command) => command.run(),
            Self::Compare(command) => command.run(),
            Self::Eval(command) => command.run(),
            Self::Context(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Reproduce(command) => command.run(),
            Self::Run(command) => command.run(),
            Self::Status(command) => command.run(),
            Self::Simulate(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Figure(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Adapt(command) => command.run(),
            Self::Bench(command) => command.run(),
            Self::Completions(command) => {
                command.run();
                Ok(())
            }
            Self::Man(command) => command.run(),
        }
    }
}
