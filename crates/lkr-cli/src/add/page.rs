//! A single page of the web.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use percent_encoding::percent_decode_str;
use ureq::{Agent, http::Uri};

use super::item::{FileItem, Item};

/// How long a page may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The largest page, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The most redirects that are followed.
const MAX_REDIRECTS: u32 = 5;

/// The extension of each content type, by which the server knows the format.
const FORMATS: [(&str, &str); 6] = [
    ("text/html", "html"),
    ("application/xhtml+xml", "html"),
    ("application/pdf", "pdf"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
];

/// Whether an argument is the address of a page.
pub(super) fn is_address(argument: &str) -> bool {
    argument.starts_with("http://") || argument.starts_with("https://")
}

/// Downloads a page. Its source is its address.
pub(super) fn fetch(address: &str) -> Result<Item> {
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(MAX_REDIRECTS)
        .user_agent(concat!("lkr/", env!("CARGO_PKG_VERSION")))
        .build();
    // The page failed, not the server: the error has no type by which others would take it for that.
    let failed = |error: ureq::Error| anyhow!("GET {address}: {error}");
    let mut response = config.new_agent().get(address).call().map_err(failed)?;
    let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let file = file_item(address, content_type.unwrap_or_default())?;
    let body = response.body_mut().with_config().limit(MAX_BYTES);
    let bytes = body.read_to_vec().map_err(failed)?;
    Ok(Item::Bytes(file, bytes))
}

/// The file of a page. Its content type is passed on, because it may declare a charset that the page itself does not.
fn file_item(address: &str, content_type: &str) -> Result<FileItem> {
    Ok(FileItem {
        file_name: file_name(address, content_type)?,
        media_type: content_type.to_owned(),
        source: address.to_owned(),
        ..FileItem::default()
    })
}

/// The last part of the path, with the extension of the content type.
fn file_name(address: &str, content_type: &str) -> Result<String> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    let Some((_, extension)) = FORMATS.iter().find(|(known, _)| *known == media_type) else {
        bail!("{address} is of type {media_type:?}, which is no text, Markdown, HTML, PDF or DOCX");
    };
    let uri: Uri = address.parse().with_context(|| format!("{address} is no address"))?;
    let last = uri.path().rsplit('/').find(|part| !part.is_empty()).or_else(|| uri.host()).unwrap_or("page");
    let last = percent_decode_str(last).decode_utf8_lossy().replace('/', "_");
    let has_extension = last.to_lowercase().ends_with(&format!(".{extension}"));
    Ok(if has_extension { last } else { format!("{last}.{extension}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charset_of_a_page_is_kept() {
        let file = file_item("https://a.example/x.html", "text/html; charset=windows-1251").unwrap();
        assert_eq!(file.media_type, "text/html; charset=windows-1251");
    }

    #[test]
    fn content_type_decides_the_extension() {
        let name = |address, content_type| file_name(address, content_type).unwrap();
        assert_eq!(name("https://a.example/wiki/Tide?x=1", "text/html; charset=utf-8"), "Tide.html");
        assert_eq!(name("https://a.example/r%C3%A9sum%C3%A9.PDF", "application/pdf"), "résumé.PDF");
        assert_eq!(name("https://a.example", "TEXT/HTML"), "a.example.html");
        let error = file_name("https://a.example/x", "image/png").unwrap_err().to_string();
        assert!(error.contains("image/png"), "{error}");
    }
}
