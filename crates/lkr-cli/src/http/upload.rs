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

    /// The form of a file in memory, with its content type if that is valid.
    pub(crate) fn of_bytes(&self, bytes: &'a [u8], media_type: &str) -> Form<'a> {
        let part = Part::bytes(bytes).mime_str(media_type);
        self.form(part.unwrap_or_else(|_| Part::bytes(bytes)))
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

#[cfg(test)]
mod tests {
    use std::{io::Write as _, net::TcpListener, thread};

    use super::*;
    use crate::http::Client;

    /// The request that sends a file in memory with this content type.
    fn request(media_type: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request: Vec<u8> = Vec::new();
            let mut buffer = [0_u8; 4096];
            while !request.ends_with(b"--\r\n") {
                let length = stream.read(&mut buffer).unwrap();
                assert!(length > 0, "the request ends with the form");
                request.extend_from_slice(buffer.get(..length).unwrap());
            }
            let body = r#"{"code":0,"message":"ok"}"#;
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            String::from_utf8(request).unwrap()
        });
        let form = FileForm { file_name: "a.html", fields: &[] }.of_bytes(b"text", media_type);
        client.post_form("/documents/upload", form).unwrap();
        server.join().unwrap()
    }

    #[test]
    fn content_type_of_bytes_is_sent_if_it_is_valid() {
        let sent = request("text/html; charset=windows-1251");
        assert!(sent.contains("text/html; charset=windows-1251\r\n\r\ntext\r\n"), "{sent}");
        for invalid in ["", "nonsense"] {
            let sent = request(invalid);
            assert!(sent.contains("filename=\"a.html\"\r\n\r\ntext\r\n"), "{sent}");
        }
    }
}
