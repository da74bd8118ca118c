//! What single declarations say.

use super::colour::{MIN_OPACITY, Paint};

/// Words that stand so many pixels to the left or above are out of sight.
const FAR: f64 = -999.0;

/// Boxes and letters of so many pixels cannot be seen.
const TINY: f64 = 1.0;

/// What is declared, less than CSS knows: several of its properties can be one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Property {
    Display,
    /// Whether an element has a box of its own, where it would stand in a line.
    Boxed,
    Visibility,
    ContentVisibility,
    Opacity,
    Filter,
    Transform,
    Clip,
    ClipPath,
    FontSize,
    Color,
    Background,
    /// Whether a picture is behind the words.
    Picture,
    /// Whether letters are drawn by something other than their colour.
    Drawn,
    /// Whether an element is taken out of its place.
    Lifted,
    Left,
    Top,
    Indent,
    Width,
    MaxWidth,
    Height,
    MaxHeight,
    Overflow,
    /// Whether an element has room in spite of its height.
    Padding,
    Animation,
}

impl Property {
    /// Whether it hides by itself, whatever else is declared.
    pub(crate) const fn is_hiding(self) -> bool {
        matches!(
            self,
            Self::Display
                | Self::ContentVisibility
                | Self::Opacity
                | Self::Filter
                | Self::Transform
                | Self::Clip
                | Self::ClipPath
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Whether the property hides or helps to.
    Flag(bool),
    /// The size of letters; none where it is that of those around.
    Sizeless(Option<bool>),
    Paint(Paint),
}

/// What a declaration in lower case says; nothing where it means nothing here, or browsers do not understand it.
pub(crate) fn read(property: &str, value: &str) -> Vec<(Property, Value)> {
    let flag = |property, flag| vec![(property, Value::Flag(flag))];
    let far = |property| flag(property, pixels(value).is_some_and(|left| left <= FAR));
    let tiny = |property| flag(property, pixels(value).is_some_and(|size| size <= TINY));
    match property {
        "display" => display(value),
        "float" => flag(Property::Boxed, value != "none"),
        "position" => {
            let is_lifted = matches!(value, "absolute" | "fixed");
            vec![(Property::Lifted, Value::Flag(is_lifted)), (Property::Boxed, Value::Flag(is_lifted))]
        }
        "visibility" => flag(Property::Visibility, matches!(value, "hidden" | "collapse")),
        "content-visibility" => flag(Property::ContentVisibility, value == "hidden"),
        "opacity" => number(value).map_or_else(Vec::new, |part| flag(Property::Opacity, part <= MIN_OPACITY)),
        "filter" => {
            let part = argument(value, "opacity").and_then(number);
            flag(Property::Filter, part.is_some_and(|part| part <= MIN_OPACITY))
        }
        "transform" | "scale" | "translate" => flag(Property::Transform, moves_away(property, value)),
        "clip" => flag(Property::Clip, argument(value, "rect").is_some_and(is_empty_rect)),
        "clip-path" => flag(Property::ClipPath, is_empty_path(value)),
        "font-size" => size(value).map_or_else(Vec::new, |size| vec![(Property::FontSize, size)]),
        "font" => font(value).map_or_else(Vec::new, |size| vec![(Property::FontSize, size)]),
        "color" | "-webkit-text-fill-color" => paint(Property::Color, value),
        "background" | "background-color" | "background-image" => background(value),
        "background-clip" | "-webkit-background-clip" => flag(Property::Drawn, value == "text"),
        "text-shadow" | "-webkit-text-stroke" | "-webkit-text-stroke-width" => {
            flag(Property::Drawn, !matches!(value, "none" | "0" | "0px" | "initial" | "unset"))
        }
        "left" => far(Property::Left),
        "top" => far(Property::Top),
        "text-indent" => far(Property::Indent),
        "width" => tiny(Property::Width),
        "max-width" => tiny(Property::MaxWidth),
        "height" => tiny(Property::Height),
        "max-height" => tiny(Property::MaxHeight),
        "overflow" | "overflow-x" | "overflow-y" => {
            flag(Property::Overflow, value.split(' ').all(|value| matches!(value, "hidden" | "clip")))
        }
        "padding" | "padding-top" | "padding-bottom" | "min-height" | "min-width" => {
            let has_room = value.split(' ').any(|value| pixels(value).is_none_or(|size| size > TINY));
            if has_room { flag(Property::Padding, true) } else { Vec::new() }
        }
        "animation" | "animation-name" | "-webkit-animation" | "-webkit-animation-name" => {
            flag(Property::Animation, value != "none")
        }
        _ => Vec::new(),
    }
}

fn display(value: &str) -> Vec<(Property, Value)> {
    let boxed = |flag| (Property::Boxed, Value::Flag(flag));
    let shown = (Property::Display, Value::Flag(false));
    match value {
        "none" => vec![(Property::Display, Value::Flag(true))],
        "inline" | "contents" | "initial" | "unset" | "ruby" => vec![shown, boxed(false)],
        "inherit" | "revert" | "revert-layer" => vec![shown],
        "block" | "flow-root" | "list-item" | "flex" | "grid" => vec![shown, boxed(true)],
        value if value.starts_with("table") || value.starts_with("inline-") || value.starts_with('-') => {
            vec![shown, boxed(true)]
        }
        value if value.contains(['(', ' ']) => vec![shown],
        _ => Vec::new(),
    }
}

fn paint(property: Property, value: &str) -> Vec<(Property, Value)> {
    Paint::read(value).map_or_else(Vec::new, |paint| vec![(property, Value::Paint(paint))])
}

/// What is behind words: a colour, or what cannot be told.
fn background(value: &str) -> Vec<(Property, Value)> {
    let ground = |paint| vec![(Property::Background, Value::Paint(paint))];
    match value {
        "none" | "initial" | "unset" | "transparent" => return ground(Paint::Clear),
        "inherit" => return ground(Paint::Inherited),
        _ => {}
    }
    let is_function = |name: &str| value.contains(name);
    if is_function("url(") || is_function("gradient(") || is_function("image") || is_function("var(") {
        return vec![(Property::Picture, Value::Flag(true))];
    }
    // Colours with blanks in them are read where they stand alone.
    let colours = std::iter::once(value).chain(value.split(' '));
    let known =
        colours.filter_map(Paint::read).find(|paint| !matches!(paint, Paint::Named(_) | Paint::Other));
    ground(known.or_else(|| Paint::read(value)).unwrap_or(Paint::Other))
}

/// The size of letters.
fn size(value: &str) -> Option<Value> {
    let relative = |value: &str, unit| value.strip_suffix(unit).and_then(|part| part.parse::<f64>().ok());
    if value.ends_with("rem") {
        return pixels(value).map(|size| Value::Sizeless(Some(size <= TINY)));
    }
    let part = relative(value, "em").or_else(|| relative(value, "%").map(|percent| percent / 100.0));
    if let Some(part) = part {
        // A small part of any size is none.
        return Some(Value::Sizeless((part <= MIN_OPACITY).then_some(true)));
    }
    match value {
        "inherit" | "unset" | "larger" | "smaller" => Some(Value::Sizeless(None)),
        _ => Some(Value::Sizeless(Some(pixels(value).is_some_and(|size| size <= TINY)))),
    }
}

/// The size in a declaration of all that makes a font: weights have no unit, sizes have one or are 0.
fn font(value: &str) -> Option<Value> {
    let mut sizes = value.split(' ').filter_map(|word| word.split('/').next());
    let size_of = |word: &str| {
        let is_size = word == "0"
            || (word.starts_with(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                && word.ends_with(|c: char| c.is_ascii_alphabetic() || c == '%'));
        is_size.then(|| size(word)).flatten()
    };
    sizes.find_map(size_of)
}

/// A length in pixels; those that depend on the window as in one of 1,000 pixels. None for parts and what is computed.
fn pixels(value: &str) -> Option<f64> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match value.get(digits.len()..)? {
        "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "em" | "rem" | "pc" => 16.0,
        "ex" | "ch" => 8.0,
        "vw" | "vh" | "vmin" | "vmax" => 10.0,
        "cm" => 37.8,
        "mm" | "q" => 3.78,
        "in" => 96.0,
        // Nothing needs no unit, and a part of nothing is nothing.
        "" => return digits.trim_end_matches('%').parse().ok().filter(|number: &f64| *number == 0.0),
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * unit)
}

fn number(value: &str) -> Option<f64> {
    let value = value.trim();
    let percent = value.strip_suffix('%');
    let number: f64 = percent.unwrap_or(value).trim().parse().ok()?;
    Some(if percent.is_some() { number / 100.0 } else { number })
}

/// What stands in the brackets of a function.
fn argument<'a>(value: &'a str, function: &str) -> Option<&'a str> {
    let (_, rest) = value.split_once(function)?;
    rest.trim_start().strip_prefix('(')?.split(')').next()
}

fn moves_away(property: &str, value: &str) -> bool {
    let is_nothing = |value: &str| number(value).is_some_and(|part| part.abs() <= MIN_OPACITY);
    let is_far = |value: &str| pixels(value.trim()).is_some_and(|left| left <= FAR);
    if property != "transform" {
        let test: &dyn Fn(&str) -> bool = if property == "scale" { &is_nothing } else { &is_far };
        return value.split(' ').any(test);
    }
    let scales = ["scale", "scalex", "scaley", "scale3d"].iter().filter_map(|name| argument(value, name));
    let moves = ["translate", "translatex", "translatey", "translate3d"].iter();
    scales.flat_map(|values| values.split(',').take(2)).any(is_nothing)
        || moves
            .filter_map(|name| argument(value, name))
            .flat_map(|values| values.split(',').take(2))
            .any(is_far)
}

/// Whether nothing is left of a rectangle of the distances to the top, the right, the bottom and the left.
fn is_empty_rect(values: &str) -> bool {
    let sides = values.split([',', ' ']).filter(|value| !value.is_empty()).take(5).map(pixels);
    match sides.collect::<Option<Vec<f64>>>().as_deref() {
        Some(&[top, right, bottom, left]) => top >= bottom || left >= right,
        _ => false,
    }
}

fn is_empty_path(value: &str) -> bool {
    if let Some(values) = argument(value, "inset") {
        let sides = values.split(' ').take_while(|value| *value != "round").take(4).map(number);
        let sides: Vec<f64> = sides.map(|side| side.unwrap_or_default()).collect();
        let side = |at: usize, or: usize| sides.get(at).or_else(|| sides.get(or)).or_else(|| sides.first());
        let both = |one: Option<&f64>, other: Option<&f64>| one.zip(other).is_some_and(|(a, b)| a + b >= 1.0);
        // Lengths without a sign of parts are nothing to go by.
        return values.contains('%') && (both(side(0, 0), side(2, 0)) || both(side(1, 0), side(3, 1)));
    }
    if let Some(values) = argument(value, "circle") {
        return values.split(' ').next().and_then(pixels) == Some(0.0);
    }
    let is_nothing = |value: &str| pixels(value) == Some(0.0);
    argument(value, "polygon")
        .is_some_and(|values| values.split([',', ' ']).filter(|v| !v.is_empty()).all(is_nothing))
}
