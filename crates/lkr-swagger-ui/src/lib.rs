#![doc = include_str!("../README.md")]

use std::io::{self, Read};

use flate2::read::GzDecoder;

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The name of the script. It declares `SwaggerUIBundle`.
pub const SCRIPT: &str = "swagger-ui-bundle.js";

/// The name of the style sheet.
pub const STYLE: &str = "swagger-ui.css";

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    name: &'static str,
    content_type: &'static str,
    version: &'static str,
    gzipped: &'static [u8],
}

/// The file with this name.
#[must_use]
pub fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// The content type.
    #[must_use]
    pub const fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// The checksum of the file, which changes with its contents.
    #[must_use]
    pub const fn version(&self) -> &'static str {
        self.version
    }

    /// The file, compressed with gzip.
    #[must_use]
    pub const fn gzipped(&self) -> &'static [u8] {
        self.gzipped
    }

    /// The file.
    ///
    /// # Errors
    /// The compressed file is damaged.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.gzipped).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
