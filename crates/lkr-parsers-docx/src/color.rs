//! Which colours make words that nobody sees: white ones with nothing behind them.

use quick_xml::events::BytesStart;

use crate::xml::{Kind, Piece, Xml, attribute};

/// A colour counts as white where red, green and blue are at least this.
const WHITE: u8 = 0xf0;

/// What the theme of a document makes of the paper's colour.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Paper {
    /// Whether what the theme calls the colour of the paper is not white, or may be any.
    is_dark: bool,
}

impl Paper {
    /// Reads a theme, or the settings that say what its colours stand for. Where they are broken any colour may be meant.
    pub(crate) fn read(&mut self, xml: &mut Xml<'_>) {
        let mut in_paper = false;
        loop {
            match xml.next() {
                Ok(Some(Piece::Open(Kind::Paper, _))) => in_paper = true,
                Ok(Some(Piece::Close(Kind::Paper))) => in_paper = false,
                Ok(Some(Piece::Open(Kind::FillColor, tag))) if in_paper => {
                    let color = attribute(tag, "lastClr").or_else(|| attribute(tag, "val"));
                    self.is_dark |= !color.is_some_and(|color| is_white(&color) || color == "window");
                }
                Ok(Some(Piece::Open(Kind::ColorMapping, tag))) => {
                    self.is_dark |= attribute(tag, "bg1").is_some_and(|color| color != "light1");
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => {
                    self.is_dark = true;
                    return;
                }
            }
        }
    }

    /// Whether a tag that colours text makes it white.
    pub(crate) fn is_white_text(self, tag: &BytesStart<'_>) -> bool {
        self.color(tag, ["val", "themeColor", "themeShade", "themeTint"]).unwrap_or_default()
    }

    /// Whether a tag lays a colour behind text that white words can be read on.
    pub(crate) fn is_ground(self, kind: Kind, tag: &BytesStart<'_>) -> bool {
        let value = attribute(tag, "val").unwrap_or_default();
        let front = self.color(tag, ["color", "themeColor", "themeShade", "themeTint"]);
        match kind {
            Kind::Highlight => !matches!(value.as_str(), "none" | "white" | ""),
            Kind::Background if attribute(tag, "color").is_none() => front != Some(true),
            Kind::Background => front == Some(false),
            _ => {
                let fill = self.color(tag, ["fill", "themeFill", "themeFillShade", "themeFillTint"]);
                let is_pattern = !matches!(value.as_str(), "clear" | "nil" | "");
                fill == Some(false) || is_pattern && front != Some(true)
            }
        }
    }

    /// Whether the colour in attributes of these names is white; none where there is none. A theme's colour outweighs
    /// the one beside it, which is what it was when the document was written.
    fn color(self, tag: &BytesStart<'_>, [own, of_theme, shade, tint]: [&str; 4]) -> Option<bool> {
        let own = attribute(tag, own).filter(|color| color != "auto").map(|color| is_white(&color));
        let is_dark = |shade: String| u8::from_str_radix(&shade, 16).is_ok_and(|part| part < WHITE);
        match attribute(tag, of_theme).as_deref() {
            None | Some("none") => own,
            Some("background1" | "light1") => {
                Some(!self.is_dark && !attribute(tag, shade).is_some_and(is_dark))
            }
            // Ink is white only where a tint says so.
            Some("text1" | "dark1") if attribute(tag, tint).is_none() => Some(false),
            Some(_) => Some(own.unwrap_or_default()),
        }
    }
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
