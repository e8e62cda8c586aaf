//! `windvane man`: the manual.

use crate::output;
use anyhow::Context as _;
use clap::Args;
use clap_mangen::Man;
use std::path::PathBuf;

/// Prints the manual page, or writes one for every command.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane man | man -l -
  windvane man --out ~/.local/share/man/man1")]
pub(crate) struct Manual {
    /// Folder in which to write windvane.1 and a page for each command
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Manual {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let command = crate::command_line();
        let Some(out) = self.out else {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            output::raw(&page);
            return Ok(());
        };
        std::fs::create_dir_all(&out)
            .and_then(|()| clap_mangen::generate_to(command, &out))
            .with_context(|| out.display().to_string())
    }
}
