//! Detects white text and the backgrounds that make it visible.

use quick_xml::events::BytesStart;

use crate::xml::{ElementKind, Xml, XmlEvent, attribute};

/// A colour counts as white if red, green and blue are at least this.
const WHITE: u8 = 0xf0;

/// The page colour of the document's theme.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThemeColors {
    /// Whether the page colour of the theme is not white, or unknown.
    is_dark: bool,
}

impl ThemeColors {
    /// Reads a theme, or the settings that map its colours. If they are invalid, the page colour is unknown.
    pub(crate) fn read(&mut self, xml: &mut Xml<'_>) {
        let mut in_page_color = false;
        loop {
            match xml.next() {
                Ok(Some(XmlEvent::Start(ElementKind::PageColor, _))) => in_page_color = true,
                Ok(Some(XmlEvent::End(ElementKind::PageColor))) => in_page_color = false,
                Ok(Some(XmlEvent::Start(ElementKind::FillColor, tag))) if in_page_color => {
                    let color = attribute(tag, "lastClr").or_else(|| attribute(tag, "val"));
                    self.is_dark |= !color.is_some_and(|color| is_white(&color) || color == "window");
                }
                Ok(Some(XmlEvent::Start(ElementKind::ColorMapping, tag))) => {
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

    /// Whether a tag makes text white.
    pub(crate) fn is_white_text(self, tag: &BytesStart<'_>) -> bool {
        self.color(tag, ["val", "themeColor", "themeShade", "themeTint"]).unwrap_or_default()
    }

    /// Whether a tag sets a background on which white text is visible.
    pub(crate) fn is_background(self, kind: ElementKind, tag: &BytesStart<'_>) -> bool {
        let value = attribute(tag, "val").unwrap_or_default();
        let front = self.color(tag, ["color", "themeColor", "themeShade", "themeTint"]);
        match kind {
            ElementKind::Highlight => !matches!(value.as_str(), "none" | "white" | ""),
            ElementKind::Background if attribute(tag, "color").is_none() => front != Some(true),
            ElementKind::Background => front == Some(false),
            _ => {
                let fill = self.color(tag, ["fill", "themeFill", "themeFillShade", "themeFillTint"]);
                let is_pattern = !matches!(value.as_str(), "clear" | "nil" | "");
                fill == Some(false) || is_pattern && front != Some(true)
            }
        }
    }

    /// Whether the colour in the attributes of these names is white; `None` if there is none. A theme colour overrides
    /// the literal one, which is only its value when the document was saved.
    fn color(self, tag: &BytesStart<'_>, [literal, of_theme, shade, tint]: [&str; 4]) -> Option<bool> {
        let literal = attribute(tag, literal).filter(|color| color != "auto").map(|color| is_white(&color));
        let is_dark = |shade: String| u8::from_str_radix(&shade, 16).is_ok_and(|part| part < WHITE);
        match attribute(tag, of_theme).as_deref() {
            None | Some("none") => literal,
            Some("background1" | "light1") => {
                Some(!self.is_dark && !attribute(tag, shade).is_some_and(is_dark))
            }
            // The text colour is white only with a tint.
            Some("text1" | "dark1") if attribute(tag, tint).is_none() => Some(false),
            Some(_) => Some(literal.unwrap_or_default()),
        }
    }
}

/// Whether six hexadecimal digits are a white colour.
pub(crate) fn is_white(color: &str) -> bool {
    let channel = |at: usize| color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    color.len() == 6 && [0, 2, 4].into_iter().all(|at| channel(at).is_some_and(|value| value >= WHITE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_white_colour_counts_as_white() {
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
