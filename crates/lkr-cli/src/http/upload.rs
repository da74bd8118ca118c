//! Files in forms.

use std::{fmt::Write as _, io::Read, path::Path};

use anyhow::{Context, Result};
use ureq::unversioned::multipart::{Form, Part};

/// A file and what is said about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileForm<'a> {
    /// The name of the file, by which the server knows its format.
    pub(crate) file_name: &'a str,
    /// The other fields of the form, empty ones left out.
    pub(crate) fields: &'a [(&'static str, String)],
}

impl<'a> FileForm<'a> {
    /// The form of a file on disk, which is read while it is sent.
    pub(crate) fn of_path(&self, path: &Path) -> Result<Form<'a>> {
        let part = Part::file(path).with_context(|| format!("read {}", path.display()))?;
        Ok(self.form(part))
    }

    /// The form of a file in memory.
    pub(crate) fn of_bytes(&self, bytes: &'a [u8]) -> Form<'a> {
        self.form(Part::bytes(bytes))
    }

    /// The form of what a reader returns, whose length is not announced.
    pub(crate) fn of_reader(&self, reader: impl Read + 'static) -> Form<'a> {
        self.form(Part::owned_reader(reader))
    }

    fn form(&self, file: Part<'a>) -> Form<'a> {
        let fields = self.fields.iter().filter(|(_, value)| !value.is_empty());
        let form = fields.fold(Form::new(), |form, (name, value)| form.text(name, value));
        form.part("file", file.file_name(&escaped(self.file_name)))
    }
}

/// A file name as browsers write it in a form: quotes and line breaks are percent-encoded. See the HTML standard,
/// "Multipart form data". So are other control characters, which a header cannot contain.
fn escaped(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len()), |mut escaped, c| {
        if c == '"' || (c.is_ascii_control() && c != '\t') {
            let _ = write!(escaped, "%{:02X}", u32::from(c));
        } else {
            escaped.push(c);
        }
        escaped
    })
}
