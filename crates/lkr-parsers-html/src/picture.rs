//! Pages whose only content is pictures.

use lkr_domain::Parsed;
use lkr_parsers::Result;

use crate::error;

/// Refuses a page that has pictures but no text.
pub(crate) fn refuse_pictures(parsed: Parsed, html: &str) -> Result<Parsed> {
    if parsed.blocks.is_empty() && has_picture(html) { Err(error::pictures()) } else { Ok(parsed) }
}

fn has_picture(html: &str) -> bool {
    let is_picture = |tag: &str| {
        let name = tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        ["img", "svg", "canvas"].iter().any(|picture| name.eq_ignore_ascii_case(picture))
    };
    html.split('<').skip(1).any(is_picture)
}

#[cfg(test)]
mod tests {
    use lkr_parsers::{ErrorKind, Parser};

    use crate::{Article, PlainHtml};

    #[test]
    fn page_with_only_pictures_is_refused_as_pictures() {
        for parser in [&Article as &dyn Parser, &PlainHtml] {
            let error = parser.parse(&"<body><IMG src=a.png> <p hidden>a".into()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Pictures, "{}", parser.name());
            for page in ["<img src=a.png><p>words", "<body></body>", "", "<imgs>"] {
                assert!(parser.parse(&page.into()).is_ok(), "{}: {page}", parser.name());
            }
        }
    }
}
