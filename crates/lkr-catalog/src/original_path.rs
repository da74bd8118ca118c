//! Names and paths of originals.

use lkr_domain::{DocId, last_component};
use time::OffsetDateTime;
use uuid::Uuid;

/// Where the original of a document is stored: `<YYYY>/<MM>/<doc_id>_<name>`, with year and month in UTC.
#[must_use]
pub fn original_path(doc_id: DocId, file_name: &str, at: OffsetDateTime) -> String {
    month_path(at, &format!("{doc_id}_{}", stored_name(file_name)))
}

/// Where the original that replaces a document's is stored: like the first one, and apart from it and all others, as
/// `<YYYY>/<MM>/<doc_id>_<8 hex>_<name>`.
#[must_use]
pub fn replaced_path(doc_id: DocId, file_name: &str, at: OffsetDateTime) -> String {
    let (apart, _, _, _) = Uuid::new_v4().as_fields();
    month_path(at, &format!("{doc_id}_{apart:08x}_{}", stored_name(file_name)))
}

fn month_path(at: OffsetDateTime, name: &str) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    format!("{:04}/{:02}/{name}", at.year(), u8::from(at.month()))
}

/// The longest name of a stored file in bytes, what stands before it not counted.
pub(crate) const MAX_NAME_BYTES: usize = 180;

/// The longest suffix that is kept where a name is cut.
const MAX_SUFFIX_BYTES: usize = 20;

/// What is left of a file's name before it touches a disk or a header: its last component, without control
/// characters, marks that turn the direction of writing, and leading dots, of at most 180 bytes.
#[must_use]
pub fn stored_name(file_name: &str) -> String {
    let last = last_component(file_name).trim();
    let name: String = last.chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    let dots = name.len() - name.trim_start_matches('.').len();
    let name = ["_".repeat(dots).as_str(), name.trim_start_matches('.')].concat();
    match name.is_empty() {
        true => "unnamed".to_owned(),
        false => cut(&name),
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cuts a name in its middle, so that its suffix stays.
fn cut(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let suffix = name.rfind('.').and_then(|dot| name.get(dot..));
    let suffix = suffix.filter(|suffix| suffix.len() <= MAX_SUFFIX_BYTES).unwrap_or_default();
    let end = name.floor_char_boundary(MAX_NAME_BYTES - suffix.len());
    [name.get(..end).unwrap_or_default(), suffix].concat()
}

/// Whether a path is one that this module makes.
pub(crate) fn is_original_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let digits = |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    matches!(&*parts, [year, month, name] if digits(year, 4) && digits(month, 2)
        && name.split_once('_').is_some_and(|(id, _)| id.parse::<DocId>().is_ok()))
}
