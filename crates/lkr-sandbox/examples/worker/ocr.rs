//! OCR whose pixels are a command line, which is carried out by a program.

use std::{process::Command, time::Instant};

use lkr_parsers::{Error, ErrorKind, Ocr, PageImage, Result};
use lkr_sandbox::ProgramFiles;

/// The only program that may be started, its loader and its libraries.
pub(crate) fn files() -> ProgramFiles {
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1"];
    ProgramFiles {
        readable: ["/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", "/dev/zero"].map(Into::into).to_vec(),
        executable: ["/bin/sleep", "/bin/cat", "/usr/bin/sha256sum"]
            .into_iter()
            .chain(loaders)
            .map(Into::into)
            .collect(),
    }
}

#[derive(Debug)]
pub(crate) struct ProgramOcr;

impl Ocr for ProgramOcr {
    fn name(&self) -> &'static str {
        "program"
    }

    fn read(&self, image: &PageImage<'_>, _: Instant) -> Result<String> {
        let line = String::from_utf8_lossy(image.grey).into_owned();
        let mut words = line.split_whitespace();
        let output = Command::new(words.next().unwrap_or_default()).args(words).output();
        match output {
            Ok(output) if output.status.success() => Ok("succeeded".to_owned()),
            Ok(output) => Ok(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(Error::new(ErrorKind::Internal, "start the program", error)),
        }
    }
}
