//! `windvane completions`: the command line for shells.

use crate::output;
use clap::Args;
use clap_complete::Shell;

/// Prints a script that lets a shell complete commands and options.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane completions bash > ~/.local/share/bash-completion/completions/windvane
  windvane completions zsh > ~/.zfunc/_windvane
  windvane completions fish > ~/.config/fish/completions/windvane.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command_line(), "windvane", &mut script);
        output::raw(&script);
    }
}
