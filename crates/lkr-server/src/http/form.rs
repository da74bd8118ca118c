//! Forms with a file. The file is written to the disk as it arrives.

use std::{borrow::Cow, collections::BTreeMap, fs::File, path::Path};

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::{
    HttpMessage, HttpRequest,
    error::{ParseError, PayloadError},
    http::header::{self, ExtendedValue},
};
use encoding_rs::Encoding;
use futures_util::TryStreamExt;
use tokio::io::AsyncWriteExt;

use super::{
    client_quota::QuotaShare,
    json_body::{check_content_encoding, too_many_bodies},
    part_headers::{PartHeaderDecoder, restored},
    request_body::RequestBody,
};
use crate::error::{ApiError, ErrorCode};

/// What a form may contain.
pub(crate) struct FormRules<'a> {
    /// The name of the file part.
    pub(crate) file: &'static str,
    /// The names of the text parts.
    pub(crate) texts: &'static [&'static str],
    /// The length of all texts together in bytes.
    pub(crate) max_text_bytes: usize,
    /// The allowed file name extensions, in lower case with their dots.
    pub(crate) extensions: &'a [String],
    /// The largest file in bytes.
    pub(crate) max_file_bytes: u64,
    /// The folder of unnamed temporary files.
    pub(crate) spool: &'a Path,
}

/// A form with a file.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) file: FormFile,
    pub(crate) texts: BTreeMap<&'static str, Vec<u8>>,
    /// The bytes of the file, which count until this is dropped.
    pub(crate) spooled: QuotaShare,
}

/// What a form takes of its client's quotas.
#[derive(Debug)]
pub(super) struct FormShares {
    /// For the texts.
    pub(super) memory: QuotaShare,
    /// For the file on the disk.
    pub(super) spooled: QuotaShare,
}

/// An uploaded file.
#[derive(Debug)]
pub(crate) struct FormFile {
    /// `unnamed` if the client sent no name.
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    /// An unnamed temporary file.
    pub(crate) file: File,
    pub(crate) length: u64,
}

/// Reads a form and everything after it. Nobody polls the body afterwards while the file is being parsed.
pub(super) async fn read(
    request: &HttpRequest,
    rules: &FormRules<'_>,
    shares: FormShares,
) -> Result<Form, ApiError> {
    check_content_type(request)?;
    let body = RequestBody::of(request).ok_or_else(|| ApiError::invalid("the form is empty"))?;
    let media_type = request.mime_type().ok().flatten();
    let boundary = media_type.as_ref().and_then(|media_type| media_type.get_param("boundary"));
    let boundary = boundary.map(|boundary| boundary.as_str()).unwrap_or_default();
    let parts = PartHeaderDecoder::new(body.clone(), boundary);
    let form = read_parts(Multipart::new(request.headers(), parts), rules, shares).await?;
    body.drain().await;
    Ok(form)
}

fn check_content_type(request: &HttpRequest) -> Result<(), ApiError> {
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if sent.eq_ignore_ascii_case("multipart/form-data") {
        return check_content_encoding(request.headers());
    }
    let reason = format!("the content type must be multipart/form-data, not {sent:?}");
    Err(ApiError::wrong_content_type(reason))
}

async fn read_parts(
    mut parts: Multipart,
    rules: &FormRules<'_>,
    shares: FormShares,
) -> Result<Form, ApiError> {
    let FormShares { mut memory, mut spooled } = shares;
    let (mut file, mut texts, mut length) = (None, BTreeMap::new(), 0);
    while let Some(part) = parts.try_next().await.map_err(unreadable)? {
        let name = part.name().unwrap_or_default().to_owned();
        if name == rules.file {
            if file.is_some() {
                return Err(ApiError::invalid(format!("the form has two parts named {name}")));
            }
            file = Some(read_file(part, rules, &mut spooled).await?);
            continue;
        }
        let known = rules.texts.iter().find(|known| **known == name);
        let known =
            known.ok_or_else(|| ApiError::invalid(format!("the form has an unknown part {name:?}")))?;
        let text = read_text(part, known, rules.max_text_bytes.saturating_sub(length)).await?;
        length += text.len();
        if !memory.grow_to(length) {
            return Err(too_many_bodies());
        }
        if texts.insert(*known, text).is_some() {
            return Err(ApiError::invalid(format!("the form has two parts named {known}")));
        }
    }
    let file = file.ok_or_else(|| ApiError::invalid(format!("the form has no part named {}", rules.file)))?;
    Ok(Form { file, texts, spooled })
}

async fn read_file(
    mut part: Field,
    rules: &FormRules<'_>,
    spooled: &mut QuotaShare,
) -> Result<FormFile, ApiError> {
    let name = file_name(&part);
    check_extension(&name, rules.extensions)?;
    let media_type = part.content_type().map(ToString::to_string);
    let mut file = tokio::fs::File::from_std(spool_file(rules.spool).await?);
    let mut length = 0;
    while let Some(chunk) = part.try_next().await.map_err(unreadable)? {
        length += chunk.len() as u64;
        if length > rules.max_file_bytes {
            let most = rules.max_file_bytes / (1024 * 1024);
            return Err(ApiError::too_large(format!("{name} is larger than {most} MB")));
        }
        if !spooled.grow_to(usize::try_from(length).unwrap_or(usize::MAX)) {
            return Err(ApiError::new(ErrorCode::Overloaded, "too many uploads of this account at once"));
        }
        file.write_all(&chunk).await.map_err(not_stored)?;
    }
    file.flush().await.map_err(not_stored)?;
    Ok(FormFile { name, media_type, file: file.into_std().await, length })
}

/// An unnamed temporary file. Its folder is created again if somebody removed it.
async fn spool_file(folder: &Path) -> Result<File, ApiError> {
    tokio::fs::create_dir_all(folder).await.map_err(not_stored)?;
    tempfile::tempfile_in(folder).map_err(not_stored)
}

fn not_stored(error: std::io::Error) -> ApiError {
    ApiError::from(lkr::Error::new(lkr::ErrorKind::Internal, "store the upload", error))
}

/// How a browser escapes characters in a file name that would end its header: HTML's "multipart/form-data encoding
/// algorithm". Any other per cent sign is literal.
const ESCAPES: [(&str, &str); 3] = [("%0A", "\n"), ("%0D", "\r"), ("%22", "\"")];

/// The name of an uploaded file. `filename*` wins over `filename` (RFC 6266).
fn file_name(part: &Field) -> String {
    let disposition = part.content_disposition();
    let extended = disposition.and_then(|it| it.get_filename_ext());
    let extended = extended.and_then(decoded);
    let header = || std::str::from_utf8(part.headers().get(header::CONTENT_DISPOSITION)?.as_bytes()).ok();
    let plain = || header().and_then(plain_name).map(|name| restored(&unescaped(&name)));
    let name = extended.or_else(plain).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "unnamed".to_owned())
}

/// A value with its own encoding (RFC 8187).
fn decoded(value: &ExtendedValue) -> Option<String> {
    let encoding = Encoding::for_label(value.charset.to_string().as_bytes())?;
    let text = encoding.decode_without_bom_handling_and_without_replacement(&value.value);
    text.map(Cow::into_owned)
}

/// The value of `filename` in a `Content-Disposition`. Browsers write a backslash as it is, other programs double it: it
/// is an escape only before a quotation mark or another backslash.
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

/// A quoted text, and the rest after its closing quotation mark.
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
    ESCAPES.iter().fold(name.to_owned(), |name, (escape, character)| name.replace(escape, character))
}

fn check_extension(name: &str, allowed: &[String]) -> Result<(), ApiError> {
    let extension = lkr::files::extension(name);
    if allowed.contains(&extension) {
        return Ok(());
    }
    let allowed = allowed.join(", ");
    Err(ApiError::invalid(match extension.as_str() {
        "" => format!("the file {name:?} has no extension; allowed extensions: {allowed}"),
        _ => format!("files that end with {extension} may not be uploaded; allowed extensions: {allowed}"),
    }))
}

/// A text of at most `room` bytes.
async fn read_text(mut part: Field, name: &str, room: usize) -> Result<Vec<u8>, ApiError> {
    let bytes = part.bytes(room).await;
    let too_large = |_| ApiError::too_large(format!("{name} is larger than {room} bytes"));
    Ok(bytes.map_err(too_large)?.map_err(unreadable)?.into())
}

fn unreadable(error: MultipartError) -> ApiError {
    let reason = match error {
        MultipartError::Payload(PayloadError::Overflow) => {
            let what = "a line before its first part, or the headers of a part, exceed 64 KiB";
            return ApiError::too_large(format!("the form cannot be read: {what}"));
        }
        MultipartError::Parse(ParseError::TooLarge) => {
            return ApiError::too_large("the form cannot be read: a part of it has more than 32 headers");
        }
        MultipartError::Payload(error) => error.to_string(),
        MultipartError::Parse(error) => {
            format!("a header of a part is invalid: {error}")
        }
        error => error.to_string(),
    };
    ApiError::invalid(format!("the form cannot be read: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_file_name_is_decoded_from_its_charset() {
        for (value, name) in [
            ("UTF-8''%e2%82%ac.txt", Some("€.txt")),
            ("ISO-8859-1'en'na%EFve.txt", Some("naïve.txt")),
            ("UTF-8''%ff.txt", None),
            ("unknown''a.txt", None),
        ] {
            let value = header::parse_extended_value(value).unwrap();
            assert_eq!(decoded(&value).as_deref(), name, "{value:?}");
        }
    }

    #[test]
    fn file_name_is_parsed_from_quoted_escaped_and_plain_dispositions() {
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
