//! How elements affect the text in and around them.

use dom_query::NodeRef;

use crate::{
    page::{ScriptKind, script_kind},
    style_sheet::StyleSheet,
    visibility::{self, TextVisibility},
};

/// The role of an element in the layout of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Not shown.
    Hidden,
    /// Part of a line.
    Inline,
    /// Part of a line, separated by spaces.
    Spaced,
    /// A superscript or subscript in a line.
    Script(ScriptKind),
    /// Starts a line of its own.
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

/// Words in classes, ids and roles that mark an element as boilerplate.
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
        | "svg" | "video" | "audio" | "img" | "object" | "mtr" | "mtd" => Role::Spaced,
        "a" if is_adjacent_link(node) => Role::Spaced,
        _ if is_block(name) => Role::Block,
        _ => script_kind(node, name).map_or(Role::Inline, Role::Script),
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

/// Whether a link directly follows another one, as in a navigation bar that only a style sheet spaces.
fn is_adjacent_link(node: &NodeRef<'_>) -> bool {
    node.prev_sibling().is_some_and(|other| other.has_name("a"))
}

/// Whether a `title` belongs to a drawing rather than the page.
fn is_drawing_title(node: &NodeRef<'_>) -> bool {
    node.parent().is_some_and(|parent| !parent.has_name("head"))
}

/// The visibility of text in an element; `None` if all of it is hidden.
pub(crate) fn visibility_in(
    node: &NodeRef<'_>,
    name: &str,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
) -> Option<TextVisibility> {
    visibility::visibility_in(name, |attribute| node.attr(attribute), style_sheet, outer)
}

/// Whether an element surrounds the main text of a page: navigation, comments, banners and similar.
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
