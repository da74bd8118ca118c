//! Reads the front matter of a document.

/// The value of a key without quotes; `None` if it is not on the line of the key.
pub(crate) fn value<'a>(front_matter: &'a str, key: &str) -> Option<&'a str> {
    let values = front_matter.lines().filter_map(|line| {
        let value = line.strip_prefix(key)?.trim_start();
        value.strip_prefix([':', '=']).map(str::trim)
    });
    let unquoted = values.map(|value| value.trim_matches(['"', '\'']).trim());
    unquoted.into_iter().find(|value| value.chars().any(char::is_alphanumeric))
}

/// Whether `text` begins with a front-matter fence.
pub(crate) fn is_fenced(text: &str) -> bool {
    text.starts_with("---") || text.starts_with("+++")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_reads_yaml_and_toml() {
        let yaml = "---\ntitle: \"The Handbook\"\ndescription: 'How we work: all of it'\ntags:\n- a\n---";
        assert_eq!(value(yaml, "title"), Some("The Handbook"));
        assert_eq!(value(yaml, "description"), Some("How we work: all of it"));
        assert_eq!(value(yaml, "tags"), None);
        assert_eq!(value(yaml, "tit"), None);
        assert_eq!(value("+++\ntitle = \"A\"\n+++", "title"), Some("A"));
    }
}
