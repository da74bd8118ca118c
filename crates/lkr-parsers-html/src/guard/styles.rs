//! Where a page's style sheets are.

use super::{
    read::{attributes_of, begins_tag, comment, raw_end, read_tag},
    tag::RAW,
};

/// What the tags of a page say of its style sheets.
#[derive(Debug, Default)]
pub(crate) struct Styles<'a> {
    /// Those of the page itself, and whether they hold on every screen.
    pub(crate) sheets: Vec<(&'a str, bool)>,
    /// Whether there are others.
    pub(crate) is_linked: bool,
    /// Whether there are pictures and the like.
    pub(crate) has_pictures: bool,
}

/// Looks for the style sheets of a page.
pub(crate) fn styles(html: &str) -> Styles<'_> {
    let mut found = Styles::default();
    let (mut at, mut without) = (0, 0_usize);
    while let Some(start) = html.get(at..).and_then(|rest| rest.find('<')).map(|next| at + next) {
        let rest = html.get(start..).unwrap_or_default();
        if rest.starts_with("<!--") {
            at = start + comment(rest);
            continue;
        }
        if !begins_tag(rest.as_bytes()) {
            at = start + 1;
            continue;
        }
        let Some(tag) = read_tag(html, start) else {
            return found;
        };
        at = tag.end;
        let name = tag.name.as_str();
        if matches!(name, "noscript" | "template") {
            // What stands there does not hold.
            without = if tag.is_end { without.saturating_sub(1) } else { without + 1 };
        }
        if tag.is_end {
            continue;
        }
        let value = |attribute: &str| {
            let all = attributes_of(html.get(start..tag.end).unwrap_or_default());
            let found = all.into_iter().find(|(other, _)| other.eq_ignore_ascii_case(attribute));
            found.map(|(_, value)| value.to_ascii_lowercase())
        };
        if tag.name.is(RAW) {
            let end = raw_end(html, &tag);
            if name == "style" && without == 0 {
                let is_plain =
                    value("media").is_none_or(|media| matches!(media.trim(), "" | "all" | "screen"));
                found.sheets.push((html.get(tag.end..end).unwrap_or_default(), is_plain));
            }
            at = end;
        }
        found.is_linked |= name == "link" && value("rel").is_some_and(|rel| rel.contains("stylesheet"));
        found.has_pictures |=
            matches!(name, "img" | "picture" | "video" | "canvas" | "svg" | "iframe" | "object" | "embed");
    }
    found
}
