use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, serde::rfc3339};

use crate::{
    Error, ErrorKind, Result,
    error::{READ, WRITE},
};

/// The version of the archive's form.
const FORM: u32 = 1;

/// What an archive says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    form: u32,
    /// What made it, with its version.
    pub program: String,
    /// When.
    #[serde(with = "rfc3339")]
    pub made_at: OffsetDateTime,
    /// What is stored in it: the name of an engine.
    pub engine: String,
    /// The version of what is stored in it.
    pub version: u64,
}

impl About {
    /// What is said of an archive that is made now.
    pub fn new(program: impl Into<String>, engine: impl Into<String>, version: u64) -> Self {
        let made_at = OffsetDateTime::now_utc();
        Self { form: FORM, program: program.into(), made_at, engine: engine.into(), version }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::new(ErrorKind::Invalid, WRITE, error))
    }

    /// # Errors
    /// `Newer` where the form is a later one, whatever else it says; `Foreign` where it is no such record.
    pub(crate) fn decode(json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Form {
            form: u32,
        }
        let foreign = |error| Error::new(ErrorKind::Foreign, READ, error);
        let Form { form } = serde_json::from_slice(json).map_err(foreign)?;
        if form > FORM {
            let reason = format!("its form is {form}, and this program knows forms up to {FORM}");
            return Err(Error::new(ErrorKind::Newer, READ, reason));
        }
        serde_json::from_slice(json).map_err(foreign)
    }
}
