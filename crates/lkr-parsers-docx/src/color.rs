//! Which colours make words that nobody sees: white ones with nothing behind them.

use quick_xml::events::BytesStart;

use crate::xml::{Kind, attribute};

/// A colour counts as white where red, green and blue are at least this.
const WHITE: u8 = 0xf0;

/// Whether a tag that colours text makes it white.
pub(crate) fn is_white_text(tag: &BytesStart<'_>) -> bool {
    attribute(tag, "val").is_some_and(|value| is_white(&value))
}

/// Whether a tag lays a colour behind text that white words can be read on.
pub(crate) fn is_ground(kind: Kind, tag: &BytesStart<'_>) -> bool {
    let value = attribute(tag, "val").unwrap_or_default();
    match kind {
        Kind::Highlight => !matches!(value.as_str(), "none" | "white" | ""),
        Kind::Background => attribute(tag, "color").is_none_or(|color| color != "auto" && !is_white(&color)),
        _ => {
            let is_pattern = !matches!(value.as_str(), "clear" | "nil" | "");
            is_colored(tag, "fill", "themeFill") || is_pattern && !is_colored_white(tag)
        }
    }
}

/// Whether an attribute names a colour other than white. A theme's colours are not read, so they count as others.
fn is_colored(tag: &BytesStart<'_>, name: &str, of_theme: &str) -> bool {
    match attribute(tag, name).filter(|color| color != "auto") {
        Some(color) => !is_white(&color),
        None => {
            attribute(tag, of_theme).is_some_and(|color| !matches!(color.as_str(), "background1" | "light1"))
        }
    }
}

/// Whether a pattern is drawn in white.
fn is_colored_white(tag: &BytesStart<'_>) -> bool {
    attribute(tag, "color").is_some_and(|color| is_white(&color))
}

/// Whether six hexadecimal digits are white.
pub(crate) fn is_white(color: &str) -> bool {
    let channel = |at: usize| color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    color.len() == 6 && [0, 2, 4].into_iter().all(|at| channel(at).is_some_and(|value| value >= WHITE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_white_is_white() {
        for (color, expected) in [
            ("FFFFFF", true),
            ("f0f0F0", true),
            ("EFFFFF", false),
            ("FFFFEF", false),
            ("auto", false),
            ("FFF", false),
            ("\u{e9}\u{e9}\u{e9}", false),
        ] {
            assert_eq!(is_white(color), expected, "{color}");
        }
    }
}
