use lkr_domain::Chunk;

/// The most code points of a title that precede a text: those of the longest heading, so that a title that is the
/// document's heading is indexed whole. See docs/studies.md#indexed-text.
const TITLE_CHARS: usize = 300;

/// The text of a node or chunk as the dense and the sparse leg index it: the first 300 characters of the document's
/// title, the heading path and the text, each on a line of its own. Blank parts are omitted.
#[must_use]
pub fn indexed_text(title: &str, path: &[String], text: &str) -> String {
    let path = path.join(" > ");
    let title = title.trim();
    let title = title.char_indices().nth(TITLE_CHARS).map_or(title, |(end, _)| title.split_at(end).0);
    let parts = [title, path.as_str(), text];
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// The text of a chunk as it is indexed: [`indexed_text`] with the header of the table in which the chunk begins before
/// its own text, so that a figure is found with its column.
#[must_use]
pub fn indexed_chunk(title: &str, chunk: &Chunk) -> String {
    if chunk.table_header.is_empty() {
        return indexed_text(title, &chunk.path, &chunk.text);
    }
    indexed_text(title, &chunk.path, &format!("{}\n{}", chunk.table_header, chunk.text))
}

/// Whether [`indexed_text`] contains all of a title.
pub(crate) fn is_indexed_whole(title: &str) -> bool {
    title.trim().chars().count() <= TITLE_CHARS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexed_text_omits_blank_parts_and_cuts_the_title() {
        let path = ["Io".to_owned(), "Tidal heating".to_owned()];
        assert_eq!(indexed_text("Moons", &path, "It melts."), "Moons\nIo > Tidal heating\nIt melts.");
        assert_eq!(indexed_text(" ", &[], "It melts."), "It melts.");
        assert_eq!(
            indexed_text(&"é".repeat(4_096), &[], "It melts."),
            format!("{}\nIt melts.", "é".repeat(300))
        );
    }
}
