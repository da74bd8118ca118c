use cssparser::color::{parse_hash_color, parse_named_color};

/// Colours whose components differ by at most this much look the same. See docs/studies.md#hidden-text.
const TOLERANCE: u8 = 5;

/// Opacity up to this is invisible. See docs/studies.md#hidden-text.
pub(super) const MIN_OPACITY: f64 = 0.05;

/// The colour of text or of its background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Transparent,
    /// Red, green and blue.
    Rgb([u8; 3]),
    /// The colour of the parent element.
    Inherited,
    /// Unknown, such as that of an image or a variable.
    Unknown,
}

impl Color {
    pub(crate) const WHITE: Self = Self::Rgb([255, 255, 255]);

    /// Parses a colour in lower case; `None` if it is not a colour.
    pub(crate) fn read(value: &str) -> Option<Self> {
        if let Some(digits) = value.strip_prefix('#') {
            return hex(digits);
        }
        if let Some((function, values)) = value.split_once('(') {
            return Some(function_color(function, values.trim_end_matches(')')));
        }
        match value {
            "transparent" => return Some(Self::Transparent),
            "inherit" | "unset" | "currentcolor" => return Some(Self::Inherited),
            _ => {}
        }
        if let Ok((red, green, blue)) = parse_named_color(value) {
            return Some(Self::Rgb([red, green, blue]));
        }
        let is_keyword = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_keyword = is_keyword || value == "revert-layer";
        is_keyword.then_some(Self::Unknown)
    }

    /// Whether text of this colour is invisible on a background.
    pub(crate) fn is_invisible_on(self, background: Self) -> bool {
        match (self, background) {
            (Self::Transparent, _) => true,
            (Self::Rgb(text), Self::Rgb(background)) => {
                text.iter().zip(background).all(|(text, background)| text.abs_diff(background) <= TOLERANCE)
            }
            _ => false,
        }
    }
}

fn hex(digits: &str) -> Option<Color> {
    let (red, green, blue, alpha) = parse_hash_color(digits.as_bytes()).ok()?;
    Some(if f64::from(alpha) <= MIN_OPACITY { Color::Transparent } else { Color::Rgb([red, green, blue]) })
}

/// The colour of `rgb()` or `hsl()`, with or without opacity. All other functions are unknown.
fn function_color(function: &str, values: &str) -> Color {
    let values = values.split([',', '/', ' ']).filter(|value| !value.is_empty());
    let values: Vec<&str> = values.take(4).collect();
    let number = |value: &str, full_scale: f64| match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0 * full_scale),
        None => value.trim_end_matches("deg").parse::<f64>().ok(),
    };
    if let Some(alpha) = values.get(3).and_then(|alpha| number(alpha, 1.0))
        && alpha <= MIN_OPACITY
    {
        return Color::Transparent;
    }
    let is_hsl = matches!(function, "hsl" | "hsla");
    let full_scale = if is_hsl { 1.0 } else { 255.0 };
    let parts: Option<Vec<f64>> = values.iter().take(3).map(|value| number(value, full_scale)).collect();
    match (function, parts.as_deref()) {
        ("rgb" | "rgba", Some(&[red, green, blue])) => Color::Rgb([red, green, blue].map(byte)),
        ("hsl" | "hsla", Some(&[hue, saturation, lightness])) => hsl(hue, saturation, lightness),
        _ => Color::Unknown,
    }
}

fn hsl(hue: f64, saturation: f64, lightness: f64) -> Color {
    let (saturation, lightness) = (saturation.clamp(0.0, 1.0), lightness.clamp(0.0, 1.0));
    let spread = saturation * lightness.min(1.0 - lightness);
    let part = |offset: f64| {
        let at = (offset + hue / 30.0).rem_euclid(12.0);
        byte(255.0 * (lightness - spread * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0)))
    };
    Color::Rgb([part(0.0), part(8.0), part(4.0)])
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is clamped first")]
fn byte(part: f64) -> u8 {
    part.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_values_are_parsed() {
        for (value, expected) in [
            ("white", Some(Color::WHITE)),
            ("#fff", Some(Color::WHITE)),
            ("#ffff", Some(Color::WHITE)),
            ("#ff0000", Some(Color::Rgb([255, 0, 0]))),
            ("#00000000", Some(Color::Transparent)),
            ("#0000", Some(Color::Transparent)),
            ("#ff", None),
            ("#gggggg", None),
            ("rgb(255,255,255)", Some(Color::WHITE)),
            ("rgb(100% 100% 100% / 50%)", Some(Color::WHITE)),
            ("rgba(0, 0, 0, 0)", Some(Color::Transparent)),
            ("rgb(0 0 0 / 0%)", Some(Color::Transparent)),
            ("hsl(0,0%,100%)", Some(Color::WHITE)),
            ("hsl(120deg 100% 50%)", Some(Color::Rgb([0, 255, 0]))),
            ("hsla(0,0%,0%,.01)", Some(Color::Transparent)),
            ("var(--x)", Some(Color::Unknown)),
            ("rgb(a)", Some(Color::Unknown)),
            ("inherit", Some(Color::Inherited)),
            ("3px", None),
        ] {
            assert_eq!(Color::read(value), expected, "{value}");
        }
        let tomato = Color::read("tomato").unwrap();
        assert!(tomato.is_invisible_on(tomato) && !tomato.is_invisible_on(Color::WHITE));
        assert!(Color::Rgb([252, 252, 252]).is_invisible_on(Color::WHITE));
        assert!(!Color::Unknown.is_invisible_on(Color::Unknown));
    }
}
