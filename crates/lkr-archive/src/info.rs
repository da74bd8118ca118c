use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, serde::rfc3339};

use crate::{
    Error, ErrorKind, Result,
    error::{READ, WRITE},
};

/// The version of the archive format.
const FORMAT_VERSION: u32 = 1;

/// The description at the beginning of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveInfo {
    #[serde(rename = "form")]
    format_version: u32,
    /// The program that created the archive, with its version.
    pub program: String,
    /// When it was created.
    #[serde(rename = "made_at", with = "rfc3339")]
    pub created_at: OffsetDateTime,
    /// The kind of store in the archive.
    pub engine: String,
    /// The version of that store.
    pub version: u64,
}

impl ArchiveInfo {
    /// Describes an archive that is created now.
    pub fn new(program: impl Into<String>, engine: impl Into<String>, version: u64) -> Self {
        let created_at = OffsetDateTime::now_utc();
        Self {
            format_version: FORMAT_VERSION,
            program: program.into(),
            created_at,
            engine: engine.into(),
            version,
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::new(ErrorKind::Invalid, WRITE, error))
    }

    /// # Errors
    /// `UnsupportedVersion` if the format version is later than [`FORMAT_VERSION`], whatever the other fields are;
    /// `NotAnArchive` if it is not a description.
    pub(crate) fn decode(json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct FormatVersion {
            form: u32,
        }
        let not_an_archive = |error| Error::new(ErrorKind::NotAnArchive, READ, error);
        let FormatVersion { form: format_version } = serde_json::from_slice(json).map_err(not_an_archive)?;
        if format_version > FORMAT_VERSION {
            let reason = format!(
                "the archive has format version {format_version}; this program supports versions up to {FORMAT_VERSION}"
            );
            return Err(Error::new(ErrorKind::UnsupportedVersion, READ, reason));
        }
        serde_json::from_slice(json).map_err(not_an_archive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_keys_are_those_of_format_version_1() {
        let json =
            r#"{"form":1,"program":"lkr 1","made_at":"2026-01-02T03:04:05Z","engine":"lmdb","version":2}"#;
        let info = ArchiveInfo::decode(json.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(info.encode().unwrap()).unwrap(), json);
    }
}
