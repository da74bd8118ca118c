use lkr_domain::{Chunk, IndexedTitle};

/// The most code points of a title that precede a text: those of the longest heading, so that a title that is the
/// document's heading is indexed whole. See docs/studies.md#indexed-text.
const TITLE_CHARS: usize = 300;

/// The text of a node or chunk as the dense and the sparse leg index it: the first 300 characters of the document's
/// title, the heading path below it and the text, each on a line of its own. Blank parts are omitted.
#[must_use]
pub fn indexed_text(title: &IndexedTitle, path: &[String], text: &str) -> String {
    let below = path.split_first().filter(|_| title.begins_paths).map_or(path, |(_, below)| below);
    let path = below.join(" > ");
    let title = title.text.trim();
    let title = title.char_indices().nth(TITLE_CHARS).map_or(title, |(end, _)| title.split_at(end).0);
    let parts = [title, path.as_str(), text];
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// The text of a chunk as it is indexed: [`indexed_text`] with the header of the table in which the chunk begins before
/// its own text, so that a figure is found with its column.
#[must_use]
pub fn indexed_chunk(title: &IndexedTitle, chunk: &Chunk) -> String {
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
        assert_eq!(indexed_text(&"Moons".into(), &path, "It melts."), "Moons\nIo > Tidal heating\nIt melts.");
        assert_eq!(indexed_text(&" ".into(), &[], "It melts."), "It melts.");
        assert_eq!(
            indexed_text(&"é".repeat(4_096).as_str().into(), &[], "It melts."),
            format!("{}\nIt melts.", "é".repeat(300))
        );
    }

    #[test]
    fn indexed_text_has_a_title_that_begins_the_path_once() {
        let title = IndexedTitle { text: "Io".to_owned(), begins_paths: true };
        let path = ["Io".to_owned(), "Io".to_owned(), "Tidal heating".to_owned()];
        assert_eq!(indexed_text(&title, &path, "It melts."), "Io\nIo > Tidal heating\nIt melts.");
        assert_eq!(indexed_text(&title, &path[..1], "It melts."), "Io\nIt melts.");
        assert_eq!(indexed_text(&title, &[], "It melts."), "Io\nIt melts.");
    }
}
