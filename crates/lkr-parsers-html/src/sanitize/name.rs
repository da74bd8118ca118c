//! Names of elements, and how they affect the elements around them.

/// Names are compared up to this many bytes: no relevant name is longer.
const NAME_BYTES: usize = 16;

/// The name of an element in lower case, with its traits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TagName {
    bytes: [u8; NAME_BYTES],
    traits: u32,
}

/// It ends an open paragraph, and the end tag of an inline element cannot close anything outside of it.
pub(super) const BLOCK: u32 = 1;
/// It is reopened after a block that ends before it.
pub(super) const FORMATTING: u32 = 1 << 1;
/// An end tag inside it cannot close anything outside of it.
pub(super) const BARRIER: u32 = 1 << 2;
/// It has no content and no end tag.
pub(super) const VOID: u32 = 1 << 3;
/// A page has exactly one.
pub(super) const DOCUMENT: u32 = 1 << 4;
/// Its content is text up to its own end tag.
pub(super) const RAW: u32 = 1 << 5;
/// Its content is not HTML.
pub(super) const FOREIGN: u32 = 1 << 6;
/// It contains HTML within content that is not HTML.
pub(super) const INTEGRATION: u32 = 1 << 7;
/// A part of a table. The end tags of tables close everything inside.
pub(super) const TABULAR: u32 = 1 << 8;
pub(super) const TABLE: u32 = 1 << 9;
const CELL: u32 = 1 << 10;
const ROW: u32 = 1 << 11;
const ROWS: u32 = 1 << 12;
const PARAGRAPH: u32 = 1 << 13;
const ITEM: u32 = 1 << 14;
const LIST: u32 = 1 << 15;
const TERM: u32 = 1 << 16;
const TERMS: u32 = 1 << 17;
const OPTION: u32 = 1 << 18;
const SELECT: u32 = 1 << 19;

impl TagName {
    pub(super) fn new(name: &str) -> Self {
        let mut bytes = [0; NAME_BYTES];
        for (byte, letter) in bytes.iter_mut().zip(name.bytes()) {
            *byte = letter.to_ascii_lowercase();
        }
        let mut found = Self { bytes, traits: 0 };
        found.traits = traits(found.as_str());
        found
    }

    pub(super) fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        self.bytes.get(..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// Whether it has one of the traits.
    pub(super) const fn is(&self, traits: u32) -> bool {
        self.traits & traits != 0
    }

    /// The traits of the open elements that this one closes, and of those that stop the search for them.
    pub(super) const fn implied_end(&self) -> Option<(u32, u32)> {
        match self.traits {
            traits if traits & ITEM != 0 => Some((ITEM, LIST | BARRIER)),
            traits if traits & TERM != 0 => Some((TERM, TERMS | BARRIER)),
            traits if traits & OPTION != 0 => Some((OPTION, SELECT | BARRIER)),
            traits if traits & CELL != 0 => Some((CELL, ROW | TABLE)),
            traits if traits & ROW != 0 => Some((ROW, TABLE)),
            traits if traits & ROWS != 0 => Some((ROWS, TABLE)),
            traits if traits & BLOCK != 0 => Some((PARAGRAPH, BARRIER)),
            _ => None,
        }
    }
}

fn traits(name: &str) -> u32 {
    match name {
        "p" => BLOCK | PARAGRAPH,
        "li" => BLOCK | ITEM,
        "ul" | "ol" | "menu" | "dir" => BLOCK | LIST,
        "dd" | "dt" => BLOCK | TERM,
        "dl" => BLOCK | TERMS,
        "option" | "optgroup" => OPTION,
        "select" => SELECT | BARRIER,
        "td" | "th" => CELL | BARRIER | TABULAR,
        "tr" => ROW | TABULAR,
        "tbody" | "thead" | "tfoot" => ROWS | TABULAR,
        "caption" => ROWS | BARRIER | TABULAR,
        "table" => BLOCK | TABLE | BARRIER | TABULAR,
        "template" | "object" | "applet" | "marquee" => BARRIER,
        "svg" | "math" => FOREIGN,
        "foreignobject" => INTEGRATION | BARRIER,
        "desc" | "annotation-xml" | "mi" | "mo" | "mn" | "ms" | "mtext" => INTEGRATION,
        "html" | "head" | "body" => DOCUMENT,
        _ => traits_of_text(name),
    }
}

fn traits_of_text(name: &str) -> u32 {
    match name {
        "area" | "base" | "basefont" | "bgsound" | "br" | "col" | "embed" | "frame" | "img" | "input"
        | "keygen" | "link" | "meta" | "param" | "source" | "track" | "wbr" => VOID,
        "hr" => VOID | BLOCK,
        "a" | "b" | "big" | "code" | "em" | "font" | "i" | "nobr" | "s" | "small" | "strike" | "strong"
        | "tt" | "u" => FORMATTING,
        "script" | "style" | "iframe" | "noembed" | "noframes" | "textarea" | "title" => RAW,
        "xmp" | "plaintext" => RAW | BLOCK,
        "address" | "article" | "aside" | "blockquote" | "center" | "details" | "dialog" | "div"
        | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5"
        | "h6" | "header" | "hgroup" | "listing" | "main" | "nav" | "pre" | "search" | "section"
        | "summary" => BLOCK,
        _ => 0,
    }
}
