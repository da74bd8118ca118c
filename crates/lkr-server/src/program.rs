//! The program `lkr-server`: parses arguments, starts logging and runs the server until a signal.

use std::{ffi::OsString, fs, io::Write as _, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use futures_util::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    config::{ConfigSources, LoadedConfig, WrongArgument, load, show},
    file_reader::PARSE_WORKER,
    first_admin,
    logging::{StartedLogging, start_logging},
    memory,
    open::taxonomy,
    run::{StartOptions, run},
    runtimes::Runtimes,
};

/// The exit status if an argument is wrong, as of other commands.
const WRONG_ARGUMENTS: u8 = 2;

/// How long the last log lines may take to be written before the process ends.
const LOG_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The same where the process is to end at once.
const SHORT_LOG_GRACE_PERIOD: Duration = Duration::from_millis(100);

/// The exit status if the server did not end in order.
const FAILURE: u8 = 1;

/// Runs the program `lkr-server` with `arguments`, the program's name first. The exit status is 0 after a signal that asks it to end, 2
/// if an argument is wrong, and 1 if anything else failed.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    // A parser worker closes everything that the process has open, so no other thread may run yet.
    if arguments.get(1).is_some_and(|argument| argument == PARSE_WORKER) {
        return lkr::files::run_worker();
    }
    // The parsers of files run as the same user, and this process has the keys.
    lkr::files::hide_process_memory();
    memory::limit_memory();
    if let Some(point) = lkr_fail_points::ENABLED.then(|| std::env::var("FAIL_POINT").ok()).flatten() {
        lkr_fail_points::arm(&point);
    }
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With stderr closed there is nowhere to report to.
            let _ = writeln!(std::io::stderr(), "lkr-server: {}", one_line(&error));
            if error.is::<WrongArgument>() { ExitCode::from(WRONG_ARGUMENTS) } else { ExitCode::FAILURE }
        }
    }
}

fn start(arguments: Vec<OsString>) -> Result<()> {
    let loaded = load(&ConfigSources::of_process(arguments))?;
    let logging = start_logging(&loaded.config)?;
    let log = logging.writer.clone();
    let done = start_with(loaded, logging);
    log.flush(LOG_GRACE_PERIOD);
    done
}

/// Does what the arguments ask for.
fn start_with(loaded: LoadedConfig, logging: StartedLogging) -> Result<()> {
    let LoadedConfig { config, warnings, check_only, reset_admin, print } = loaded;
    let StartedLogging { limiter, writer: log, spans } = logging;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if check_only {
        taxonomy(config.taxonomy_path.as_deref())?;
    }
    if let Some(text) = print.or_else(|| check_only.then(|| show(&config))) {
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    let runtimes = Runtimes::start()?;
    if reset_admin {
        let file = runtimes.block_on(first_admin::reset(&config))?;
        let text = format!("the account admin has a new password, in {}\n", file.display());
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    let served = runtimes.block_on(async {
        tokio::spawn(limiter.report());
        let mut signals = vec![signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
        if !is_hangup_ignored() {
            signals.push(signal(SignalKind::hangup())?);
        }
        let last_lines = log.clone();
        let stop = async move {
            next_of(&mut signals).await;
            tokio::spawn(async move {
                next_of(&mut signals).await;
                tracing::warn!("stopped at once by a second signal");
                last_lines.flush(SHORT_LOG_GRACE_PERIOD);
                std::process::exit(i32::from(FAILURE));
            });
        };
        run(
            config,
            StartOptions { spans, log: Some(log), ..StartOptions::default() },
            &runtimes.ingestion(),
            stop,
        )
        .await
    });
    runtimes.shutdown();
    served
}

/// Waits for one of the signals.
async fn next_of(signals: &mut [Signal]) {
    select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
}

/// Whether the process was started so that it ignores the signal of a closed terminal, as `nohup` does. Only Linux tells.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // The lowest bit is signal 1, which this is.
    ignored & 1 == 1
}

/// An error and its causes in one line. A cause that an outer message already names is not repeated.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for reason in error.chain().map(ToString::to_string) {
        if !line.contains(&reason) {
            let colon = if line.is_empty() { "" } else { ": " };
            line = format!("{line}{colon}{reason}");
        }
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
