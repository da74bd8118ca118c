//! `lkr-server`: reads the configuration and runs the server.

mod memory;

use std::{
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result};
use lkr_server::{
    PARSE_WORKER,
    config::{Loaded, Sources, load, show},
    one_line, reset_admin, run,
};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How long a step on a blocking thread is waited for at the end.
const STEP_PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    // First of all: a worker gives up what the process has open, which no other thread may be using.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == PARSE_WORKER) {
        return lkr::files::work();
    }
    memory::keep_small();
    if let Some(told) = lkr_fail_points::ENABLED.then(|| std::env::var("FAIL_POINT").ok()).flatten() {
        lkr_fail_points::arm(&told);
    }
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr leaves nobody to tell.
            let _ = writeln!(std::io::stderr(), "lkr-server: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<()> {
    let Loaded { config, warnings, check_only, reset_admin: reset, print } = load(&Sources::of_process())?;
    log();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if let Some(text) = print.or_else(|| check_only.then(|| show(&config))) {
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if reset {
        let file = runtime.block_on(reset_admin(&config))?;
        let text = format!("the account admin has a new password, in {}\n", file.display());
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    let served = runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        run(config, async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    });
    // A step on a blocking thread may take a while yet; nothing waits for its outcome any more.
    runtime.shutdown_timeout(STEP_PATIENCE);
    served
}

/// Logs to stderr, as much as `RUST_LOG` says, else what matters.
fn log() {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,actix_http=off,actix_server=warn"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
}
