//! Signs that a part of a file is missing.

/// The keyword near the end of every file, and of every part that was appended to it.
const END: &[u8] = b"startxref";

/// The end of an object.
const OBJECT: &[u8] = b"endobj";

/// Whether the end of a file is missing: no `startxref` follows its last object. Files for the web have one near their start
/// too.
pub(crate) fn is_cut_off(bytes: &[u8]) -> bool {
    let Some(end) = last(bytes, END) else { return true };
    last(bytes.get(end..).unwrap_or_default(), OBJECT).is_some()
}

/// The last position of a keyword.
fn last(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).rposition(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_end_are_cut_off() {
        let whole = b"%PDF-1.7 1 0 obj null endobj xref startxref 9 %%EOF";
        assert!(!is_cut_off(whole));
        assert!(is_cut_off(&whole[..30]) && is_cut_off(b"%PDF-1.7"));
        let for_web = b"%PDF-1.7 1 0 obj null endobj startxref 0 %%EOF 2 0 obj null endobj xref";
        assert!(is_cut_off(for_web));
        assert!(!is_cut_off(&[&for_web[..], b" startxref 9 %%EOF"].concat()));
    }
}
