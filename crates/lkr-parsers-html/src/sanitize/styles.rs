//! Where a page's style sheets are.

use super::{
    name::RAW,
    tag::{attributes, comment_end, parse_tag, raw_text_end, starts_tag},
};

/// What the tags of a page say of its style sheets.
#[derive(Debug, Default)]
pub(crate) struct FoundStyles<'a> {
    /// Those of the page itself, and whether they hold on every screen.
    pub(crate) sheets: Vec<(&'a str, bool)>,
    /// Whether there are others.
    pub(crate) has_links: bool,
    /// Whether there are pictures and the like.
    pub(crate) has_pictures: bool,
}

/// Looks for the style sheets of a page.
pub(crate) fn find_styles(html: &str) -> FoundStyles<'_> {
    let mut found = FoundStyles::default();
    let (mut at, mut removed_starts) = (0, 0_usize);
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
            // What stands there does not hold.
            removed_starts = if tag.is_end { removed_starts.saturating_sub(1) } else { removed_starts + 1 };
        }
        if tag.is_end {
            continue;
        }
        let value = |attribute_end: &str| {
            let all = attributes(html.get(start..tag.end).unwrap_or_default());
            let found = all.into_iter().find(|(other, _)| other.eq_ignore_ascii_case(attribute_end));
            found.map(|(_, value)| value.to_ascii_lowercase())
        };
        if tag.name.is(RAW) {
            let end = raw_text_end(html, &tag);
            if name == "style" && removed_starts == 0 {
                let is_unconditional =
                    value("media").is_none_or(|media| matches!(media.trim(), "" | "all" | "screen"));
                found.sheets.push((html.get(tag.end..end).unwrap_or_default(), is_unconditional));
            }
            at = end;
        }
        found.has_links |= name == "link" && value("rel").is_some_and(|rel| rel.contains("stylesheet"));
        found.has_pictures |=
            matches!(name, "img" | "picture" | "video" | "canvas" | "svg" | "iframe" | "object" | "embed");
    }
    found
}
