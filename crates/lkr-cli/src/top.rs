//! `lkr top`: what a server does, refreshed in the terminal.

mod exposition;
mod histogram;
mod screen;
mod view;

use std::{
    io::{self, IsTerminal as _, Write},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{connection::Login, error_line::error_line, http::Client};
pub(crate) use exposition::Samples;
use view::{Readiness, View};

/// Clears the screen.
const CLEAR: &str = "\x1b[2J";

/// Moves to the first line.
const HOME: &str = "\x1b[H";

/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";

/// Clears what is below.
const CLEAR_BELOW: &str = "\x1b[J";

/// Arguments of `lkr top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure and refresh after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print one frame, without escape codes, and exit.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    login: Login,
}

/// What a server told at one moment.
struct Scrape {
    at: Instant,
    samples: Samples,
    readiness: Readiness,
}

/// Shows frames until the process is interrupted, or one.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let server = args.login.address()?;
    let client = Client::new(&server);
    let interval = Duration::from_secs(args.interval);
    let mut out = io::stdout();
    if args.once {
        let before = scrape(&client)?;
        thread::sleep(interval);
        out.write_all(frame(&server, &before, &scrape(&client)?).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_terminal = out.is_terminal();
    if is_terminal {
        write!(out, "{CLEAR}")?;
    }
    let mut before = None;
    loop {
        let text = match scrape(&client) {
            Ok(now) => {
                let text = frame(&server, before.as_ref().unwrap_or(&now), &now);
                before = Some(now);
                text
            }
            // The server may come back, with counters that begin again.
            Err(error) => format!("{}\n", error_line(&error)),
        };
        show(&mut out, &text, is_terminal)?;
        thread::sleep(interval);
    }
}

/// Reads the metrics and the readiness of a server.
fn scrape(client: &Client) -> Result<Scrape> {
    let text = client.page("/metrics")?;
    let samples = Samples::parse(&text).context("the response to GET /metrics")?;
    let ready: Value =
        serde_json::from_str(&client.page("/readyz")?).context("the response to GET /readyz")?;
    Ok(Scrape { at: Instant::now(), samples, readiness: Readiness::of(&ready) })
}

fn frame(server: &str, before: &Scrape, now: &Scrape) -> String {
    let seconds = now.at.duration_since(before.at).as_secs_f64();
    screen::render(server, &now.readiness, &View::between(&before.samples, &now.samples, seconds))
}

/// Writes a frame over the one before, or below it if the output is no terminal.
fn show(out: &mut impl Write, text: &str, is_terminal: bool) -> io::Result<()> {
    if is_terminal {
        write!(out, "{HOME}{}{CLEAR_BELOW}", text.replace('\n', &format!("{CLEAR_LINE}\n")))?;
    } else {
        writeln!(out, "{text}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_drawn_over_the_last_one_in_a_terminal_only() {
        let drawn = |is_terminal| {
            let mut bytes = Vec::new();
            show(&mut bytes, "a\nb\n", is_terminal).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(drawn(true), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(drawn(false), "a\nb\n\n");
    }
}
