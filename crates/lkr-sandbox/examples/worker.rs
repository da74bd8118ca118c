//! A worker whose parser misbehaves as the first word of the file says. The tests of the sandbox start it.

#![allow(clippy::panic, reason = "the fault is intended")]

use std::{process::ExitCode, time::Duration};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Error, ErrorKind, Parser, Source};

fn main() -> ExitCode {
    lkr_sandbox::run_worker(|plan| match plan.as_str() {
        Some("broken") => Err(Error::new(ErrorKind::Internal, "build the parser", "no such plugin")),
        _ => Ok(Box::new(FaultyParser)),
    })
}

#[derive(Debug)]
struct FaultyParser;

impl Parser for FaultyParser {
    fn name(&self) -> &'static str {
        "faulty"
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
                let allocated: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 4 * 1024 * 1024]).collect();
                composer.warn(allocated.len().to_string());
            }
            Some("fill") => {
                let mut file = tempfile::tempfile().map_err(failed)?;
                let chunk = vec![1; 1024 * 1024];
                for _ in 0..1024 {
                    std::io::Write::write_all(&mut file, &chunk).map_err(failed)?;
                }
            }
            Some("panic") => std::panic::panic_any("on purpose"),
            Some("refuse") => {
                return Err(Error::new(ErrorKind::Encrypted, "open", "the file needs a password"));
            }
            Some("connect") => match std::net::TcpListener::bind("127.0.0.1:0") {
                Ok(_) => composer.warn("the network is available"),
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
    Error::new(ErrorKind::Internal, "run the fault", error)
}

#[expect(unconditional_recursion, reason = "the fault is intended")]
fn recurse(depth: u64) -> u64 {
    let ballast = std::hint::black_box([depth; 512]);
    recurse(depth + 1) + ballast.iter().sum::<u64>()
}
