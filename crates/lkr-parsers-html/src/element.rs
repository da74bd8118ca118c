//! What elements mean for the text around them.

use dom_query::NodeRef;

use crate::{
    style_sheet::StyleSheet,
    visibility::{self, TextVisibility},
};

/// What an element does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is not shown.
    Hidden,
    /// It stands in a line.
    Inline,
    /// It stands in a line apart from the words around it.
    Spaced,
    /// It has lines of its own.
    Block,
    Heading(u8),
    Break,
    List {
        ordered: bool,
    },
    Item,
    Table,
    Row,
    Cell,
    Preformatted,
    Title,
}

/// Words in names of classes, ids and roles that tell what surrounds a page's text.
const BOILERPLATE_WORDS: [&str; 44] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "comment",
    "comments",
    "complementary",
    "consent",
    "contentinfo",
    "cookie",
    "cookies",
    "dialog",
    "disqus",
    "footer",
    "gdpr",
    "login",
    "menu",
    "modal",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "pagination",
    "popup",
    "promo",
    "recirc",
    "recommended",
    "related",
    "replies",
    "respond",
    "search",
    "share",
    "sharing",
    "sidebar",
    "social",
    "sponsored",
    "subscribe",
    "tags",
    "toolbar",
    "trending",
    "widget",
];

pub(crate) fn role(node: &NodeRef<'_>, name: &str, is_hidden: bool) -> Role {
    match name {
        "title" if !is_drawing_title(node) => Role::Title,
        _ if is_hidden => Role::Hidden,
        "h1" => Role::Heading(1),
        "h2" => Role::Heading(2),
        "h3" => Role::Heading(3),
        "h4" => Role::Heading(4),
        "h5" => Role::Heading(5),
        "h6" => Role::Heading(6),
        "br" => Role::Break,
        "ol" => Role::List { ordered: true },
        "ul" | "menu" | "dir" => Role::List { ordered: false },
        "li" => Role::Item,
        "table" => Role::Table,
        "tr" => Role::Row,
        "td" | "th" => Role::Cell,
        "pre" | "listing" | "xmp" | "plaintext" => Role::Preformatted,
        "option" | "optgroup" | "select" | "button" | "textarea" | "input" | "label" | "rt" | "rp"
        | "svg" | "video" | "audio" | "img" | "object" => Role::Spaced,
        "a" if is_adjacent_link(node) => Role::Spaced,
        _ if is_block(name) => Role::Block,
        _ => Role::Inline,
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "html"
            | "head"
            | "body"
            | "address"
            | "article"
            | "aside"
            | "blockquote"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "hr"
            | "legend"
            | "main"
            | "nav"
            | "p"
            | "search"
            | "section"
            | "summary"
            | "tbody"
            | "tfoot"
            | "thead"
            | "colgroup"
            | "frameset"
    )
}

/// Whether a link stands next to another one, as in a bar of them that only a style sheet parts.
fn is_adjacent_link(node: &NodeRef<'_>) -> bool {
    node.prev_sibling().is_some_and(|other| other.has_name("a"))
}

/// Whether a title is one of a drawing, not of the page.
fn is_drawing_title(node: &NodeRef<'_>) -> bool {
    node.parent().is_some_and(|parent| !parent.has_name("head"))
}

/// How words are seen in an element; none where they are not.
pub(crate) fn visibility_in(
    node: &NodeRef<'_>,
    name: &str,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
) -> Option<TextVisibility> {
    visibility::visibility_in(name, |attribute| node.attr(attribute), style_sheet, outer)
}

/// Whether an element surrounds a page's text: navigation, comments, banners and the like.
pub(crate) fn is_boilerplate(node: &NodeRef<'_>, name: &str) -> bool {
    if matches!(name, "nav" | "footer" | "aside" | "form" | "dialog") {
        return true;
    }
    if matches!(name, "html" | "body" | "main" | "article") {
        return false;
    }
    ["role", "class", "id"].iter().filter_map(|attribute| node.attr(attribute)).any(|value| {
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| BOILERPLATE_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    })
}
