/// The text of a node or chunk as both legs of a search index it: the document's title and the heading path stand
/// before it, each on its own line. Blank parts are left out.
#[must_use]
pub fn indexed_text(title: &str, path: &[String], text: &str) -> String {
    let path = path.join(" > ");
    let parts = [title.trim(), path.as_str(), text];
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_what_is_there() {
        let path = ["Io".to_owned(), "Tidal heating".to_owned()];
        assert_eq!(indexed_text("Moons", &path, "It melts."), "Moons\nIo > Tidal heating\nIt melts.");
        assert_eq!(indexed_text(" ", &[], "It melts."), "It melts.");
    }
}
