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
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    connection::Login,
    error_line::error_line,
    http::Client,
    terminal::{Output, OutputArgs},
};
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
    /// Print one JSON object for each frame instead, one a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    login: Login,
}

/// What a server told at one moment.
struct Scrape {
    at: Instant,
    samples: Samples,
    readiness: Readiness,
}

/// What a server does, as programs read it.
#[derive(Debug, Serialize)]
struct Frame<'a> {
    server: &'a str,
    #[serde(flatten)]
    readiness: &'a Readiness,
    #[serde(flatten)]
    view: View,
}

/// Shows frames until the process is interrupted, or one.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let server = args.login.address()?;
    let client = Client::new(&server);
    let interval = Duration::from_secs(args.interval);
    let output = OutputArgs::default().output();
    if args.once {
        let before = scrape(&client)?;
        thread::sleep(interval);
        let now = scrape(&client)?;
        if args.json {
            output.json(&object(&server, &before, &now)?)?;
        } else {
            output.print(&frame(&server, &before, &now))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        print_objects(&server, &client, &output, interval)
    } else {
        draw(&server, &client, interval)
    }
}

/// Prints an object after each interval. While the server cannot be reached, the objects say so.
fn print_objects(server: &str, client: &Client, output: &Output, interval: Duration) -> Result<ExitCode> {
    let mut before: Option<Scrape> = None;
    loop {
        match scrape(client) {
            Ok(now) => {
                if let Some(before) = &before {
                    output.json(&object(server, before, &now)?)?;
                }
                before = Some(now);
            }
            Err(error) => output.json(&json!({"server": server, "error": error_line(&error)}))?,
        }
        thread::sleep(interval);
    }
}

/// Draws a frame after each interval.
fn draw(server: &str, client: &Client, interval: Duration) -> Result<ExitCode> {
    let mut out = io::stdout();
    let is_terminal = out.is_terminal();
    if is_terminal {
        write!(out, "{CLEAR}")?;
    }
    let mut before = None;
    loop {
        let text = match scrape(client) {
            Ok(now) => {
                let text = frame(server, before.as_ref().unwrap_or(&now), &now);
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

fn view(before: &Scrape, now: &Scrape) -> View {
    View::between(&before.samples, &now.samples, now.at.duration_since(before.at).as_secs_f64())
}

fn frame(server: &str, before: &Scrape, now: &Scrape) -> String {
    screen::render(server, &now.readiness, &view(before, now))
}

fn object(server: &str, before: &Scrape, now: &Scrape) -> Result<Value> {
    Ok(serde_json::to_value(Frame { server, readiness: &now.readiness, view: view(before, now) })?)
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
    fn object_has_the_readiness_and_the_figures_with_their_units() {
        let scrape = |requests: u32, seconds| Scrape {
            at: Instant::now() + Duration::from_secs(seconds),
            samples: Samples::parse(&format!("lkr_http_requests_total {requests}\nlkr_ingest_workers 8\n"))
                .unwrap(),
            readiness: Readiness { status: "ok".to_owned(), ..Readiness::default() },
        };
        let object = object("http://h", &scrape(10, 0), &scrape(30, 10)).unwrap();
        assert_eq!((&object["server"], &object["status"]), (&json!("http://h"), &json!("ok")));
        assert!((object["requests_per_second"].as_f64().unwrap() - 2.0).abs() < 0.01, "{object}");
        assert_eq!((&object["workers"], &object["memory_bytes"]), (&json!(8.0), &Value::Null));
        assert_eq!(object["request_latency_seconds"], json!({"p50": null, "p99": null}));
    }

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
