/// The last component of a file path of any operating system: the part after the last slash or backslash.
///
/// ```
/// use lkr_domain::last_component;
///
/// assert_eq!(last_component("C:\\files\\report.pdf"), "report.pdf");
/// assert_eq!(last_component("a/b/"), "");
/// ```
#[must_use]
pub fn last_component(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Splits the last component of a file path at its last dot, into the stem and the suffix with the dot. A name has no
/// suffix if its last dot is its first or last character.
///
/// ```
/// use lkr_domain::stem_and_suffix;
///
/// assert_eq!(stem_and_suffix("dir.d/archive.tar.gz"), ("archive.tar", ".gz"));
/// assert_eq!(stem_and_suffix(".profile"), (".profile", ""));
/// ```
#[must_use]
pub fn stem_and_suffix(name: &str) -> (&str, &str) {
    let last = last_component(name);
    let dot = last.rfind('.').filter(|&index| index > 0 && index + 1 < last.len());
    dot.and_then(|index| last.split_at_checked(index)).unwrap_or((last, ""))
}

/// The media type of a file by the extension of its name.
#[must_use]
pub fn content_type(file_name: &str) -> &'static str {
    match stem_and_suffix(file_name).1.to_lowercase().as_str() {
        ".txt" => "text/plain",
        ".md" => "text/markdown",
        ".html" | ".htm" => "text/html",
        ".pdf" => "application/pdf",
        ".docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        _ => "application/octet-stream",
    }
}

/// Whether a file is a page of markup (Markdown or HTML), by the extension of its name. Its first heading is usually its
/// title, and its name made from that. People name other files, and their first heading may be any.
#[must_use]
pub fn is_markup(file_name: &str) -> bool {
    matches!(content_type(file_name), "text/markdown" | "text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stem_and_suffix_splits_the_last_component_at_its_last_dot() {
        for (name, stem, suffix) in [
            ("report.pdf", "report", ".pdf"),
            ("archive.tar.gz", "archive.tar", ".gz"),
            ("C:\\x\\Übung 1.DOCX", "Übung 1", ".DOCX"),
            ("../up.md", "up", ".md"),
            ("a.İ", "a", ".İ"),
            ("a..md", "a.", ".md"),
            ("..md", ".", ".md"),
            ("dir.d/name", "name", ""),
            ("mixed\\dir/名前.txt", "名前", ".txt"),
            (".pdf", ".pdf", ""),
            ("name.", "name.", ""),
            ("..", "..", ""),
            ("dir/", "", ""),
            ("", "", ""),
        ] {
            assert_eq!(stem_and_suffix(name), (stem, suffix), "{name:?}");
        }
    }

    #[test]
    fn markdown_and_html_are_markup() {
        let names = ["a.md", "a.HTML", "dir/a.htm", "a.pdf", "a.docx", "a.txt", "md", "a"];
        assert_eq!(names.map(is_markup), [true, true, true, false, false, false, false, false]);
    }
}
