//! Names and paths of originals.

use lkr_domain::{DocId, last_component, stem_and_suffix};
use time::OffsetDateTime;
use uuid::Uuid;

/// The path of a document's original: `<YYYY>/<MM>/<doc_id>_<name>`, with year and month in UTC.
#[must_use]
pub fn original_path(doc_id: DocId, file_name: &str, at: OffsetDateTime) -> String {
    month_path(at, &format!("{doc_id}_{}", stored_name(file_name)))
}

/// The path of an original that replaces an earlier one: `<YYYY>/<MM>/<doc_id>_<8 hex>_<name>`. The random part keeps
/// it apart from all other originals of the document.
#[must_use]
pub fn replaced_path(doc_id: DocId, file_name: &str, at: OffsetDateTime) -> String {
    let (random, _, _, _) = Uuid::new_v4().as_fields();
    month_path(at, &format!("{doc_id}_{random:08x}_{}", stored_name(file_name)))
}

fn month_path(at: OffsetDateTime, name: &str) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    format!("{:04}/{:02}/{name}", at.year(), u8::from(at.month()))
}

/// The most bytes of a stored file's name, without the id before it.
pub(crate) const MAX_NAME_BYTES: usize = 180;

/// The most bytes of a suffix that survives when a name is shortened.
const MAX_SUFFIX_BYTES: usize = 20;

/// Reduces a file's name to what is safe on a disk and in a header: its last component, without control characters,
/// marks that change the direction of writing, and leading dots, of at most 180 bytes. It keeps the dot of its suffix.
#[must_use]
pub fn stored_name(file_name: &str) -> String {
    let last = last_component(file_name).trim();
    let name: String = last.chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    let (stem, suffix) = stem_and_suffix(&name);
    let rest = stem.trim_start_matches('.');
    let name = ["_".repeat(stem.len() - rest.len()).as_str(), rest, suffix].concat();
    match name.is_empty() {
        true => "unnamed".to_owned(),
        false => shorten(&name),
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Shortens a name before its suffix.
fn shorten(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let suffix = name.rfind('.').and_then(|dot| name.get(dot..));
    let suffix = suffix.filter(|suffix| suffix.len() <= MAX_SUFFIX_BYTES).unwrap_or_default();
    let end = name.floor_char_boundary(MAX_NAME_BYTES - suffix.len());
    [name.get(..end).unwrap_or_default(), suffix].concat()
}

/// Whether a path has the form that this module generates.
pub(crate) fn is_original_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let digits = |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    matches!(&*parts, [year, month, name] if digits(year, 4) && digits(month, 2)
        && name.split_once('_').is_some_and(|(id, _)| id.parse::<DocId>().is_ok()))
}
