//! Forms with a file, which goes to the disk as it comes.

use std::{collections::BTreeMap, fs::File, path::Path};

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::{
    HttpMessage, HttpRequest,
    error::{ParseError, PayloadError},
    http::header,
};
use futures_util::TryStreamExt;
use tokio::io::AsyncWriteExt;

use super::{body::check_content_encoding, incoming::Incoming, part_headers::PartHeaders};
use crate::error::ApiError;

/// What a form may hold.
pub(crate) struct FormRules<'a> {
    /// The part that is the file.
    pub(crate) file: &'static str,
    /// The parts that are texts.
    pub(crate) texts: &'static [&'static str],
    /// The longest text in bytes.
    pub(crate) max_text_bytes: usize,
    /// The extensions that a file's name may have, in lower case with their dots.
    pub(crate) extensions: &'a [String],
    /// The largest file in bytes.
    pub(crate) max_file_bytes: u64,
    /// The folder of files without names.
    pub(crate) spool: &'a Path,
}

/// A form with a file.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) file: FormFile,
    pub(crate) texts: BTreeMap<&'static str, Vec<u8>>,
}

/// A file as it was sent.
#[derive(Debug)]
pub(crate) struct FormFile {
    /// `unnamed` where it had no name.
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    /// A file without a name on the disk.
    pub(crate) file: File,
    pub(crate) length: u64,
}

/// Reads a form, and what may follow it: afterwards nobody asks for the body for as long as it takes to read the file.
pub(super) async fn read(request: &HttpRequest, rules: &FormRules<'_>) -> Result<Form, ApiError> {
    check_content_type(request)?;
    let incoming = Incoming::of(request).ok_or_else(|| ApiError::invalid("the form is empty"))?;
    let media_type = request.mime_type().ok().flatten();
    let boundary = media_type.as_ref().and_then(|media_type| media_type.get_param("boundary"));
    let boundary = boundary.map(|boundary| boundary.as_str()).unwrap_or_default();
    let parts = PartHeaders::new(incoming.clone(), boundary);
    let form = read_parts(Multipart::new(request.headers(), parts), rules).await?;
    incoming.drain().await;
    Ok(form)
}

fn check_content_type(request: &HttpRequest) -> Result<(), ApiError> {
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if sent.eq_ignore_ascii_case("multipart/form-data") {
        return check_content_encoding(request.headers());
    }
    let reason = format!("the content type is multipart/form-data here, not {sent:?}");
    Err(ApiError::wrong_content_type(reason))
}

async fn read_parts(mut parts: Multipart, rules: &FormRules<'_>) -> Result<Form, ApiError> {
    let (mut file, mut texts) = (None, BTreeMap::new());
    while let Some(part) = parts.try_next().await.map_err(unreadable)? {
        let name = part.name().unwrap_or_default().to_owned();
        if name == rules.file {
            if file.is_some() {
                return Err(ApiError::invalid(format!("the form has two parts {name}")));
            }
            file = Some(read_file(part, rules).await?);
            continue;
        }
        let known = rules.texts.iter().find(|known| **known == name);
        let known = known.ok_or_else(|| ApiError::invalid(format!("unknown part {name:?} of the form")))?;
        if texts.insert(*known, read_text(part, known, rules).await?).is_some() {
            return Err(ApiError::invalid(format!("the form has two parts {known}")));
        }
    }
    let file = file.ok_or_else(|| ApiError::invalid(format!("the form has no part {}", rules.file)))?;
    Ok(Form { file, texts })
}

async fn read_file(mut part: Field, rules: &FormRules<'_>) -> Result<FormFile, ApiError> {
    let name = file_name(&part);
    check_extension(&name, rules.extensions)?;
    let media_type = part.content_type().map(ToString::to_string);
    let mut file = tokio::fs::File::from_std(spooled(rules.spool).await?);
    let mut length = 0;
    while let Some(chunk) = part.try_next().await.map_err(unreadable)? {
        length += chunk.len() as u64;
        if length > rules.max_file_bytes {
            let most = rules.max_file_bytes / (1024 * 1024);
            return Err(ApiError::too_large(format!("{name} is larger than {most} MB")));
        }
        file.write_all(&chunk).await.map_err(not_stored)?;
    }
    file.flush().await.map_err(not_stored)?;
    Ok(FormFile { name, media_type, file: file.into_std().await, length })
}

/// A file without a name. Its folder may have been tidied away.
async fn spooled(folder: &Path) -> Result<File, ApiError> {
    tokio::fs::create_dir_all(folder).await.map_err(not_stored)?;
    tempfile::tempfile_in(folder).map_err(not_stored)
}

fn not_stored(error: std::io::Error) -> ApiError {
    ApiError::from(lkr::Error::new(lkr::ErrorKind::Internal, "store the upload", error))
}

/// What a browser writes in the name of a file for what would end its header: HTML's "multipart/form-data encoding
/// algorithm". Any other per cent sign stands for itself.
const ESCAPES: [(&str, &str); 3] = [("%0A", "\n"), ("%0D", "\r"), ("%22", "\"")];

/// The name that a file was sent under. The extended form wins, as RFC 6266 has it.
fn file_name(part: &Field) -> String {
    let disposition = part.content_disposition();
    let extended = disposition.and_then(|it| it.get_filename_ext());
    let extended = extended.and_then(|name| String::from_utf8(name.value.clone()).ok());
    let header = || std::str::from_utf8(part.headers().get(header::CONTENT_DISPOSITION)?.as_bytes()).ok();
    let plain = || header().and_then(plain_name).map(|name| unescaped(&name));
    let name = extended.or_else(plain).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "unnamed".to_owned())
}

/// The value of `filename` in a `Content-Disposition`. Browsers write backslashes as they are, other programs each as
/// two: one is an escape only before a quotation mark or another one.
fn plain_name(header: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        let (key, value) = rest.split_once('=')?;
        let (value, after) = match value.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = unquoted(quoted);
                (value, after.split_once(';').map_or("", |(_, after)| after))
            }
            None => {
                let (value, after) = value.split_once(';').unwrap_or((value, ""));
                (value.trim().to_owned(), after)
            }
        };
        if key.trim().eq_ignore_ascii_case("filename") {
            return Some(value);
        }
        rest = after;
    }
}

/// A quoted text, and what follows its last quotation mark.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = chars.as_str().chars().next().filter(|c| matches!(c, '"' | '\\'));
        match (c, escaped) {
            ('"', _) => break,
            ('\\', Some(escaped)) => {
                value.push(escaped);
                chars.next();
            }
            (c, _) => value.push(c),
        }
    }
    (value, chars.as_str())
}

fn unescaped(name: &str) -> String {
    ESCAPES.iter().fold(name.to_owned(), |name, (escape, meant)| name.replace(escape, meant))
}

fn check_extension(name: &str, allowed: &[String]) -> Result<(), ApiError> {
    let extension = lkr::files::extension(name);
    if allowed.contains(&extension) {
        return Ok(());
    }
    let allowed = allowed.join(", ");
    Err(ApiError::invalid(match extension.as_str() {
        "" => format!("the file {name:?} has no extension; allowed are {allowed}"),
        _ => format!("files that end with {extension} may not be uploaded; allowed are {allowed}"),
    }))
}

async fn read_text(mut part: Field, name: &str, rules: &FormRules<'_>) -> Result<Vec<u8>, ApiError> {
    let bytes = part.bytes(rules.max_text_bytes).await;
    let too_large = |_| ApiError::too_large(format!("{name} is larger than {} bytes", rules.max_text_bytes));
    Ok(bytes.map_err(too_large)?.map_err(unreadable)?.into())
}

fn unreadable(error: MultipartError) -> ApiError {
    let reason = match error {
        MultipartError::Payload(PayloadError::Overflow) => {
            let what = "a line before its first part, or the headers of a part, have more than 64 KiB";
            return ApiError::too_large(format!("the form cannot be read: {what}"));
        }
        MultipartError::Parse(ParseError::TooLarge) => {
            return ApiError::too_large("the form cannot be read: a part of it has more than 32 headers");
        }
        MultipartError::Payload(error) => error.to_string(),
        error => error.to_string(),
    };
    ApiError::invalid(format!("the form cannot be read: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read() {
        for (header, name) in [
            (r#"form-data; name="file"; filename="C:\dir\a.txt""#, Some(r"C:\dir\a.txt")),
            (r#"form-data; filename="C:\\dir\\a.txt"; name="file""#, Some(r"C:\dir\a.txt")),
            (r#"form-data; name="a; filename=b"; FileName = "c;\"d\".txt""#, Some(r#"c;"d".txt"#)),
            (r"form-data; filename=a.txt; name=file", Some("a.txt")),
            (r#"form-data; name="file"; filename="open"#, Some("open")),
            (r#"form-data; name="file"; filename*=UTF-8''a.txt"#, None),
            ("form-data", None),
        ] {
            assert_eq!(plain_name(header).as_deref(), name, "{header}");
        }
    }
}
