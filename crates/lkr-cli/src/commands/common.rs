use crate::{connection::TargetArgs, terminal::OutputArgs};

/// Where a command works, and how it prints.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
