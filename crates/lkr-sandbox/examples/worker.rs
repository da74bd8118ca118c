//! A worker whose parser does what the file's first word says, harm included. The tests of the sandbox start it.

#![allow(clippy::panic, reason = "that is the harm it does")]

use std::{process::ExitCode, time::Duration};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Error, ErrorKind, Parser, Source};

fn main() -> ExitCode {
    lkr_sandbox::run_worker(|plan| match plan.as_str() {
        Some("broken") => Err(Error::new(ErrorKind::Internal, "build the parser", "no such plugin")),
        _ => Ok(Box::new(Obeys)),
    })
}

#[derive(Debug)]
struct Obeys;

impl Parser for Obeys {
    fn name(&self) -> &'static str {
        "obeys"
    }

    fn parse(&self, source: &Source<'_>) -> lkr_parsers::Result<Parsed> {
        let text = String::from_utf8_lossy(source.bytes);
        let mut composer = Composer::new();
        composer.push(BlockKind::Paragraph, &text, Some(1))?;
        match text.split_whitespace().next() {
            Some("sleep") => std::thread::sleep(Duration::from_secs(600)),
            Some("spin") => while std::hint::black_box(true) {},
            Some("recurse") => composer.warn(recurse(1).to_string()),
            Some("allocate") => {
                let hoard: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 4 * 1024 * 1024]).collect();
                composer.warn(hoard.len().to_string());
            }
            Some("fill") => {
                let mut file = tempfile::tempfile().map_err(failed)?;
                let chunk = vec![1; 1024 * 1024];
                for _ in 0..1024 {
                    std::io::Write::write_all(&mut file, &chunk).map_err(failed)?;
                }
            }
            Some("panic") => std::panic::panic_any("on purpose"),
            Some("refuse") => return Err(Error::new(ErrorKind::Encrypted, "open", "it needs a password")),
            Some("connect") => match std::net::TcpListener::bind("127.0.0.1:0") {
                Ok(_) => composer.warn("there is a network"),
                Err(error) => composer.warn(error.to_string()),
            },
            Some("chatter") => {
                let mut out = std::io::stdout().lock();
                for _ in 0..100_000 {
                    std::io::Write::write_all(&mut out, b"chatter chatter\n").map_err(failed)?;
                }
            }
            Some("environment") => composer.warn(std::env::var("LKR_SECRET_KEY").unwrap_or("none".into())),
            Some("files") => {
                let open = std::fs::read_dir("/proc/self/fd").map_err(failed)?;
                composer.warn(open.count().to_string());
            }
            Some("child") => {
                let child = std::process::Command::new("sleep").arg("600").spawn();
                composer.warn(child.map(|child| child.id().to_string()).map_err(failed)?);
                std::thread::sleep(Duration::from_secs(600));
            }
            Some("deadline") => {
                while !source.is_past_deadline() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            _ => {}
        }
        composer.finish()
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, "obey", error)
}

#[expect(unconditional_recursion, reason = "that is the harm it does")]
fn recurse(depth: u64) -> u64 {
    let ballast = std::hint::black_box([depth; 512]);
    recurse(depth + 1) + ballast.iter().sum::<u64>()
}
