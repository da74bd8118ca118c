//! A worker whose parser misbehaves as the first word of the file says. The tests of the sandbox start it.

#![allow(clippy::panic, reason = "the fault is intended")]

mod attempts;
mod ocr;

use std::{process::ExitCode, time::Duration};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Error, ErrorKind, Ocr, PageImage, Parser, Source};
use lkr_sandbox::{FileViewer, OcrProcess, OpenedOcr, ParserRequest, ProgramFiles, WorkerProgram};
use serde_json::Value;

fn main() -> ExitCode {
    lkr_sandbox::run_worker(&Faulty)
}

struct Faulty;

impl WorkerProgram for Faulty {
    fn open_parser(&self, request: &ParserRequest) -> lkr_parsers::Result<Box<dyn Parser>> {
        let ocr = match request.plan.as_str() {
            Some("broken") => {
                return Err(Error::new(ErrorKind::Internal, "build the parser", "no such plugin"));
            }
            Some("ocr") => Some(request.start_ocr("shell", Value::Null)?),
            _ => None,
        };
        Ok(Box::new(FaultyParser { ocr }))
    }

    fn open_viewer(&self, _: &Value) -> lkr_parsers::Result<Box<dyn FileViewer>> {
        Ok(Box::new(FaultyParser { ocr: None }))
    }

    fn ocr_files(&self, _: &Value) -> ProgramFiles {
        ocr::files()
    }

    fn open_ocr(&self, _: &Value) -> lkr_parsers::Result<OpenedOcr> {
        Ok(OpenedOcr { ocr: std::sync::Arc::new(ocr::ProgramOcr), warning: None })
    }
}

#[derive(Debug)]
struct FaultyParser {
    ocr: Option<OcrProcess>,
}

impl FaultyParser {
    /// The text that OCR finds, in whose pixels the test writes what to do.
    fn ocr(&self, pixels: &str) -> lkr_parsers::Result<String> {
        let width = u32::try_from(pixels.len()).unwrap_or(0);
        let image = PageImage { width, height: 1, grey: pixels.as_bytes(), dpi: 200 };
        let deadline = std::time::Instant::now() + Duration::from_secs(600);
        self.ocr.as_ref().map_or(Ok(String::new()), |ocr| ocr.read(&image, deadline))
    }
}

/// Views the warnings of the parser.
impl FileViewer for FaultyParser {
    fn view(&self, source: &Source<'_>) -> lkr_parsers::Result<Vec<u8>> {
        Ok(self.parse(source)?.warnings.join("\n").into_bytes())
    }
}

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
            Some("nap") => {
                std::thread::sleep(Duration::from_secs(2));
                let passed = if source.is_past_deadline() { "passed" } else { "not passed" };
                composer.warn(format!("the deadline has {passed}"));
            }
            Some("spin") => while std::hint::black_box(true) {},
            Some("recurse") => composer.warn(recurse(1).to_string()),
            Some("allocate") => {
                let allocated: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 4 * 1024 * 1024]).collect();
                composer.warn(allocated.len().to_string());
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
            Some("niceness") => {
                let niceness = rustix::process::getpriority_process(None);
                composer.warn(niceness.map_err(|error| failed(error.into()))?.to_string());
            }
            Some("files") => {
                composer.warn(attempts::open_descriptors().to_string());
            }
            Some("attempt") => {
                attempts::attempt_all(&text).into_iter().for_each(|result| composer.warn(result));
            }
            Some("ocr") => composer.warn(self.ocr(text.trim_start_matches("ocr "))?),
            Some("deadline") => while !source.is_past_deadline() {},
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
