//! What elements say of themselves that keeps their words from being seen.

use std::ops::Deref;

/// How the words in an element can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Not at all, whatever is said inside.
    Hidden,
    /// They have no size, unless an element inside gives them one.
    Sizeless,
    /// They have a size, whatever those around them have.
    Sized,
    /// Like the words around the element.
    AsAround,
}

impl Sight {
    /// Whether words have no size, as far as the element and those around it tell.
    pub(crate) const fn is_sizeless(self, around: bool) -> bool {
        match self {
            Self::Hidden | Self::Sizeless => true,
            Self::Sized => false,
            Self::AsAround => around,
        }
    }
}

/// Whether nothing in elements of that name is ever shown by a browser that runs scripts.
pub(crate) fn is_never_shown(name: &str) -> bool {
    matches!(
        name,
        "script" | "style" | "template" | "iframe" | "noembed" | "noframes" | "noscript" | "datalist"
    )
}

/// What an element says by its name and its attributes. Style sheets are not read.
pub(crate) fn sight<Value: Deref<Target = str>>(
    name: &str,
    attribute: impl Fn(&str) -> Option<Value>,
) -> Sight {
    let is_closed = name == "dialog" && attribute("open").is_none();
    if is_closed || is_never_shown(name) || attribute("hidden").is_some() {
        return Sight::Hidden;
    }
    attribute("style").map_or(Sight::AsAround, |style| sight_of_style(&style))
}

fn sight_of_style(style: &str) -> Sight {
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
    let mut sight = Sight::AsAround;
    for (property, value) in style.split(';').filter_map(|rule| rule.split_once(':')) {
        let value = value.trim_end_matches("!important");
        match (property, value) {
            ("display", "none") | ("visibility", "hidden" | "collapse") => return Sight::Hidden,
            ("opacity", value) if is_nothing(value) => return Sight::Hidden,
            ("font-size", value) => sight = size(value),
            ("font", value) if value.starts_with("0/") || value.starts_with("0px") => sight = Sight::Sizeless,
            ("font", value) if value.contains(|c: char| c.is_ascii_digit()) => sight = Sight::Sized,
            _ => {}
        }
    }
    sight
}

fn size(value: &str) -> Sight {
    // A part of no size is none.
    let is_relative = value.ends_with('%') || (value.ends_with("em") && !value.ends_with("rem"));
    match value {
        value if is_nothing(value) => Sight::Sizeless,
        "inherit" | "unset" | "larger" | "smaller" => Sight::AsAround,
        _ if is_relative => Sight::AsAround,
        _ => Sight::Sized,
    }
}

/// Whether a number, whatever its unit, is as good as 0.
fn is_nothing(value: &str) -> bool {
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    number.parse::<f64>().is_ok_and(|number| number.abs() < 0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_hide() {
        for (style, expected) in [
            ("", Sight::AsAround),
            ("color: red", Sight::AsAround),
            ("color:red; DISPLAY : none !important", Sight::Hidden),
            ("visibility:collapse", Sight::Hidden),
            ("visibility:visible", Sight::AsAround),
            ("opacity:0", Sight::Hidden),
            ("opacity: .0;", Sight::Hidden),
            ("opacity:0%", Sight::Hidden),
            ("opacity:0.5", Sight::AsAround),
            ("font-size:0", Sight::Sizeless),
            ("font-size:0.0px", Sight::Sizeless),
            ("font-size:1em", Sight::AsAround),
            ("font-size:1rem", Sight::Sized),
            ("font-size:0;font-size:12px", Sight::Sized),
            ("font:0/0 a", Sight::Sizeless),
            ("font:0.8em/1 a", Sight::Sized),
        ] {
            assert_eq!(sight_of_style(style), expected, "{style}");
        }
    }
}
