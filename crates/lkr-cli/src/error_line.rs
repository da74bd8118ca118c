//! Errors in one line.

/// An error and its causes in one line. A cause that a message already contains is not repeated.
pub(crate) fn error_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line.as_str() {
        "" => cause,
        message if message.contains(&cause) => line,
        _ => format!("{line}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn error_line_contains_each_cause_once() {
        let error = anyhow!("no such file").context("open a: no such file").context("read collection");
        assert_eq!(error_line(&error), "read collection: open a: no such file");
    }
}
