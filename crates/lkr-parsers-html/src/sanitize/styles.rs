//! Finds the style sheets of a page.

use super::{
    name::RAW,
    tag::{attributes, comment_end, parse_tag, raw_text_end, starts_tag},
};

/// The style sheets that a page contains or refers to.
#[derive(Debug, Default)]
pub(crate) struct FoundStyles<'a> {
    /// The style sheets in the page, and whether each one applies to every screen.
    pub(crate) sheets: Vec<(&'a str, bool)>,
    /// Whether the page links to other style sheets.
    pub(crate) has_links: bool,
    /// Whether there are images, videos or similar elements.
    pub(crate) has_images: bool,
}

/// Looks for the style sheets of a page.
pub(crate) fn find_styles(html: &str) -> FoundStyles<'_> {
    let mut found = FoundStyles::default();
    let (mut at, mut inert_depth) = (0, 0_usize);
    while let Some(start) = html.get(at..).and_then(|rest| rest.find('<')).map(|next| at + next) {
        let rest = html.get(start..).unwrap_or_default();
        if rest.starts_with("<!--") {
            at = start + comment_end(rest);
            continue;
        }
        if !starts_tag(rest.as_bytes()) {
            at = start + 1;
            continue;
        }
        let Some(tag) = parse_tag(html, start) else {
            return found;
        };
        at = tag.end;
        let name = tag.name.as_str();
        if matches!(name, "noscript" | "template") {
            // Style sheets in these elements do not apply.
            inert_depth = if tag.is_end { inert_depth.saturating_sub(1) } else { inert_depth + 1 };
        }
        if tag.is_end {
            continue;
        }
        if tag.name.is(RAW) {
            at = raw_text_end(html, &tag);
        }
        if name == "style" && inert_depth > 0 {
            continue;
        }
        let source = html.get(start..tag.end).unwrap_or_default();
        found.add(name, source, html.get(tag.end..at).unwrap_or_default());
    }
    found
}

impl<'a> FoundStyles<'a> {
    fn add(&mut self, name: &str, tag: &str, content: &'a str) {
        let value = |attribute: &str| {
            let found = attributes(tag).into_iter().find(|(other, _)| other.eq_ignore_ascii_case(attribute));
            found.map(|(_, value)| value.to_ascii_lowercase())
        };
        match name {
            "style" => {
                let is_unconditional =
                    value("media").is_none_or(|media| matches!(media.trim(), "" | "all" | "screen"));
                self.sheets.push((content, is_unconditional));
            }
            "link" => self.has_links |= value("rel").is_some_and(|rel| rel.contains("stylesheet")),
            "img" | "picture" | "video" | "canvas" | "svg" | "iframe" | "object" | "embed" => {
                self.has_images = true;
            }
            _ => {}
        }
    }
}
