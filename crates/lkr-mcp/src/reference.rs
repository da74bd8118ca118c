//! References to a place in a document: what clients pass to read on.

use std::{fmt, str::FromStr};

use lkr::DocId;

/// The start of the address of a document as a resource.
const SCHEME: &str = "lkr://documents/";

/// A document and the code point of its extracted text to start at.
///
/// Its text form is the id of the document, followed by `#` and the start unless that is 0. Its address as a resource is
/// `lkr://documents/{id}` or `lkr://documents/{id}/{start}`. Both are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) doc_id: DocId,
    pub(crate) start: u32,
}

impl Reference {
    pub(crate) const fn whole(doc_id: DocId) -> Self {
        Self { doc_id, start: 0 }
    }

    /// The address as a resource.
    pub(crate) fn uri(self) -> String {
        match self.start {
            0 => format!("{SCHEME}{}", self.doc_id),
            start => format!("{SCHEME}{}/{start}", self.doc_id),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start {
            0 => write!(f, "{}", self.doc_id),
            start => write!(f, "{}#{start}", self.doc_id),
        }
    }
}

/// A text that is no reference.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl FromStr for Reference {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let text = text.trim();
        let (id, start) = match text.strip_prefix(SCHEME) {
            Some(path) => path.split_once('/').unwrap_or((path, "0")),
            None => text.split_once('#').unwrap_or((text, "0")),
        };
        let doc_id = id.parse().map_err(|_| Malformed)?;
        Ok(Self { doc_id, start: start.parse().map_err(|_| Malformed)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn references_are_parsed_from_both_forms(start: u32) {
            let reference = Reference { doc_id: DocId::new(), start };
            prop_assert_eq!(reference.to_string().parse(), Ok(reference));
            prop_assert_eq!(reference.uri().parse(), Ok(reference));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            if let Ok(reference) = text.parse::<Reference>() {
                prop_assert_eq!(reference.to_string().parse(), Ok(reference));
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let id = DocId::new();
        for text in ["", "x", "lkr://documents/", &format!("{id}#"), &format!("{id}#-1"), &format!("{id}/3")]
        {
            assert_eq!(text.parse::<Reference>(), Err(Malformed), "{text}");
        }
    }
}
