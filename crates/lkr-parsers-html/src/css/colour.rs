use std::hash::{DefaultHasher, Hash, Hasher};

/// Colours that differ by no more in each part look the same.
const SAME: u8 = 5;

/// What covers less than this much of what lies behind it is as good as not there.
pub(super) const MIN_OPACITY: f64 = 0.05;

const NAMES: [(&str, [u8; 3]); 23] = [
    ("white", [255, 255, 255]),
    ("black", [0, 0, 0]),
    ("red", [255, 0, 0]),
    ("lime", [0, 255, 0]),
    ("blue", [0, 0, 255]),
    ("yellow", [255, 255, 0]),
    ("aqua", [0, 255, 255]),
    ("cyan", [0, 255, 255]),
    ("fuchsia", [255, 0, 255]),
    ("magenta", [255, 0, 255]),
    ("gray", [128, 128, 128]),
    ("grey", [128, 128, 128]),
    ("silver", [192, 192, 192]),
    ("maroon", [128, 0, 0]),
    ("olive", [128, 128, 0]),
    ("green", [0, 128, 0]),
    ("purple", [128, 0, 128]),
    ("teal", [0, 128, 128]),
    ("navy", [0, 0, 128]),
    ("snow", [255, 250, 250]),
    ("orange", [255, 165, 0]),
    ("whitesmoke", [245, 245, 245]),
    ("pink", [255, 192, 203]),
];

/// The colour of words, or of what is behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Nothing is seen of it.
    Clear,
    /// Red, green and blue.
    Colour([u8; 3]),
    /// One of the rarer names.
    Named(u64),
    /// The one of the words around.
    Inherited,
    /// One that is not known, such as that of a picture.
    Other,
}

impl Paint {
    pub(crate) const WHITE: Self = Self::Colour([255, 255, 255]);

    /// Reads a colour in lower case; none where it is none.
    pub(crate) fn read(value: &str) -> Option<Self> {
        if let Some(digits) = value.strip_prefix('#') {
            return hex(digits);
        }
        if let Some((function, values)) = value.split_once('(') {
            return Some(function_of(function, values.trim_end_matches(')')));
        }
        match value {
            "transparent" => return Some(Self::Clear),
            "inherit" | "unset" | "currentcolor" => return Some(Self::Inherited),
            "initial" | "revert" | "revert-layer" | "none" => return Some(Self::Other),
            _ => {}
        }
        if let Some((_, parts)) = NAMES.iter().find(|(name, _)| *name == value) {
            return Some(Self::Colour(*parts));
        }
        let is_name = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphabetic());
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        is_name.then(|| Self::Named(hasher.finish()))
    }

    /// Whether words of this colour cannot be told from what is behind them.
    pub(crate) fn is_lost_on(self, ground: Self) -> bool {
        match (self, ground) {
            (Self::Clear, _) => true,
            (Self::Colour(ink), Self::Colour(ground)) => {
                ink.iter().zip(ground).all(|(ink, ground)| ink.abs_diff(ground) <= SAME)
            }
            (Self::Named(ink), Self::Named(ground)) => ink == ground,
            _ => false,
        }
    }
}

fn hex(digits: &str) -> Option<Paint> {
    let digit = |c: char| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let all: Vec<u8> = digits.chars().take(9).map(digit).collect::<Option<_>>()?;
    let parts: Vec<u8> = match all.len() {
        3 | 4 => all.iter().map(|digit| digit * 17).collect(),
        6 | 8 => all.as_chunks::<2>().0.iter().map(|[high, low]| high * 16 + low).collect(),
        _ => return None,
    };
    match *parts.as_slice() {
        [_, _, _, alpha] if f64::from(alpha) / 255.0 <= MIN_OPACITY => Some(Paint::Clear),
        [red, green, blue, ..] => Some(Paint::Colour([red, green, blue])),
        _ => None,
    }
}

/// `rgb()` and `hsl()` with or without opacity; all others are not known.
fn function_of(function: &str, values: &str) -> Paint {
    let values = values.split([',', '/', ' ']).filter(|value| !value.is_empty());
    let values: Vec<&str> = values.take(4).collect();
    let number = |value: &str, of_percent: f64| match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0 * of_percent),
        None => value.trim_end_matches("deg").parse::<f64>().ok(),
    };
    if let Some(alpha) = values.get(3).and_then(|alpha| number(alpha, 1.0))
        && alpha <= MIN_OPACITY
    {
        return Paint::Clear;
    }
    let is_hsl = matches!(function, "hsl" | "hsla");
    let of_percent = if is_hsl { 1.0 } else { 255.0 };
    let parts: Option<Vec<f64>> = values.iter().take(3).map(|value| number(value, of_percent)).collect();
    match (function, parts.as_deref()) {
        ("rgb" | "rgba", Some(&[red, green, blue])) => Paint::Colour([red, green, blue].map(byte)),
        ("hsl" | "hsla", Some(&[hue, saturation, lightness])) => hsl(hue, saturation, lightness),
        _ => Paint::Other,
    }
}

fn hsl(hue: f64, saturation: f64, lightness: f64) -> Paint {
    let (saturation, lightness) = (saturation.clamp(0.0, 1.0), lightness.clamp(0.0, 1.0));
    let spread = saturation * lightness.min(1.0 - lightness);
    let part = |offset: f64| {
        let at = (offset + hue / 30.0).rem_euclid(12.0);
        byte(255.0 * (lightness - spread * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0)))
    };
    Paint::Colour([part(0.0), part(8.0), part(4.0)])
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped before")]
fn byte(part: f64) -> u8 {
    part.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read() {
        for (value, expected) in [
            ("white", Some(Paint::WHITE)),
            ("#fff", Some(Paint::WHITE)),
            ("#ffff", Some(Paint::WHITE)),
            ("#ff0000", Some(Paint::Colour([255, 0, 0]))),
            ("#00000000", Some(Paint::Clear)),
            ("#0000", Some(Paint::Clear)),
            ("#ff", None),
            ("#gggggg", None),
            ("rgb(255,255,255)", Some(Paint::WHITE)),
            ("rgb(100% 100% 100% / 50%)", Some(Paint::WHITE)),
            ("rgba(0, 0, 0, 0)", Some(Paint::Clear)),
            ("rgb(0 0 0 / 0%)", Some(Paint::Clear)),
            ("hsl(0,0%,100%)", Some(Paint::WHITE)),
            ("hsl(120deg 100% 50%)", Some(Paint::Colour([0, 255, 0]))),
            ("hsla(0,0%,0%,.01)", Some(Paint::Clear)),
            ("var(--x)", Some(Paint::Other)),
            ("rgb(a)", Some(Paint::Other)),
            ("inherit", Some(Paint::Inherited)),
            ("3px", None),
        ] {
            assert_eq!(Paint::read(value), expected, "{value}");
        }
        let tomato = Paint::read("tomato").unwrap();
        assert!(tomato.is_lost_on(tomato) && !tomato.is_lost_on(Paint::WHITE));
        assert!(Paint::Colour([252, 252, 252]).is_lost_on(Paint::WHITE));
        assert!(!Paint::Other.is_lost_on(Paint::Other));
    }
}
