//! The meaning of single declarations.

use super::color::{Color, MIN_OPACITY};

/// Text this many pixels to the left or above is off screen: `-999px` and `-9999px` are the usual idioms. See
/// docs/studies.md#hidden-text.
const OFF_SCREEN: f64 = -999.0;

/// Boxes and letters of at most this many pixels are invisible. See docs/studies.md#hidden-text.
const INVISIBLE_SIZE: f64 = 1.0;

/// The properties that matter here. Several CSS properties can map to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Property {
    Display,
    /// Whether an inline element has a box of its own.
    OwnBox,
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
    /// Whether an image is behind the text.
    BackgroundImage,
    /// Whether something other than its colour makes text visible: a shadow, a stroke or the background.
    TextEffect,
    /// Whether an element is positioned outside of the flow.
    OutOfFlow,
    Left,
    Top,
    Indent,
    Width,
    MaxWidth,
    Height,
    MaxHeight,
    Overflow,
    /// Whether an element has room for text in spite of its height.
    Padding,
    Animation,
}

impl Property {
    /// Whether it hides an element by itself.
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
    /// Whether the property hides text or contributes to hiding it.
    Flag(bool),
    /// Whether letters are too small to see; `None` if they are as large as those around.
    ZeroSize(Option<bool>),
    Color(Color),
}

/// The meaning of a declaration in lower case. Empty if the property does not matter here or the value is invalid.
pub(crate) fn read(property: &str, value: &str) -> Vec<(Property, Value)> {
    let flag = |property, flag| vec![(property, Value::Flag(flag))];
    let off_screen = |property| flag(property, pixels(value).is_some_and(|left| left <= OFF_SCREEN));
    let invisible = |property| flag(property, pixels(value).is_some_and(|size| size <= INVISIBLE_SIZE));
    match property {
        "display" => display(value),
        "float" => flag(Property::OwnBox, value != "none"),
        "position" => position(value),
        "visibility" => flag(Property::Visibility, matches!(value, "hidden" | "collapse")),
        "content-visibility" => flag(Property::ContentVisibility, value == "hidden"),
        "opacity" => number(value).map_or_else(Vec::new, |part| flag(Property::Opacity, part <= MIN_OPACITY)),
        "filter" => {
            let part = argument(value, "opacity").and_then(number);
            flag(Property::Filter, part.is_some_and(|part| part <= MIN_OPACITY))
        }
        "transform" | "scale" | "translate" => flag(Property::Transform, moves_off_screen(property, value)),
        "clip" => flag(Property::Clip, argument(value, "rect").is_some_and(is_empty_rect)),
        "clip-path" => flag(Property::ClipPath, is_empty_path(value)),
        "font-size" => size(value).map_or_else(Vec::new, |size| vec![(Property::FontSize, size)]),
        "font" => font(value).map_or_else(Vec::new, |size| vec![(Property::FontSize, size)]),
        "left" => off_screen(Property::Left),
        "top" => off_screen(Property::Top),
        "text-indent" => off_screen(Property::Indent),
        "width" => invisible(Property::Width),
        "max-width" => invisible(Property::MaxWidth),
        "height" => invisible(Property::Height),
        "max-height" => invisible(Property::MaxHeight),
        "overflow" | "overflow-x" | "overflow-y" => {
            flag(Property::Overflow, value.split(' ').all(|value| matches!(value, "hidden" | "clip")))
        }
        "animation" | "animation-name" | "-webkit-animation" | "-webkit-animation-name" => {
            flag(Property::Animation, value != "none")
        }
        _ => paint_or_padding(property, value),
    }
}

/// The meaning of the properties that paint text or its background, or give it room.
fn paint_or_padding(property: &str, value: &str) -> Vec<(Property, Value)> {
    let flag = |property, flag| vec![(property, Value::Flag(flag))];
    match property {
        "color" | "-webkit-text-fill-color" => color(Property::Color, value),
        "background" | "background-color" | "background-image" => background(value),
        "background-clip" | "-webkit-background-clip" => flag(Property::TextEffect, value == "text"),
        "text-shadow" | "-webkit-text-stroke" | "-webkit-text-stroke-width" => {
            flag(Property::TextEffect, !matches!(value, "none" | "0" | "0px" | "initial" | "unset"))
        }
        "padding" | "padding-top" | "padding-bottom" | "min-height" | "min-width" => {
            let has_room =
                value.split(' ').any(|value| pixels(value).is_none_or(|size| size > INVISIBLE_SIZE));
            if has_room { flag(Property::Padding, true) } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

fn position(value: &str) -> Vec<(Property, Value)> {
    let is_out_of_flow = matches!(value, "absolute" | "fixed");
    [Property::OutOfFlow, Property::OwnBox].map(|property| (property, Value::Flag(is_out_of_flow))).into()
}

fn display(value: &str) -> Vec<(Property, Value)> {
    let own_box = |flag| (Property::OwnBox, Value::Flag(flag));
    let shown = (Property::Display, Value::Flag(false));
    match value {
        "none" => vec![(Property::Display, Value::Flag(true))],
        "inline" | "contents" | "initial" | "unset" | "ruby" => vec![shown, own_box(false)],
        "inherit" | "revert" | "revert-layer" => vec![shown],
        "block" | "flow-root" | "list-item" | "flex" | "grid" => vec![shown, own_box(true)],
        value if value.starts_with("table") || value.starts_with("inline-") || value.starts_with('-') => {
            vec![shown, own_box(true)]
        }
        value if value.contains(['(', ' ']) => vec![shown],
        _ => Vec::new(),
    }
}

fn color(property: Property, value: &str) -> Vec<(Property, Value)> {
    Color::read(value).map_or_else(Vec::new, |color| vec![(property, Value::Color(color))])
}

/// The background of text: a colour, an image, or unknown.
fn background(value: &str) -> Vec<(Property, Value)> {
    let background = |color| vec![(Property::Background, Value::Color(color))];
    match value {
        "none" | "initial" | "unset" | "transparent" => return background(Color::Transparent),
        "inherit" => return background(Color::Inherited),
        _ => {}
    }
    let is_function = |name: &str| value.contains(name);
    if is_function("url(") || is_function("gradient(") || is_function("image") || is_function("var(") {
        return vec![(Property::BackgroundImage, Value::Flag(true))];
    }
    // A colour may contain spaces, so the whole value is tried first.
    let candidates = std::iter::once(value).chain(value.split(' '));
    let known = candidates.filter_map(Color::read).find(|color| *color != Color::Unknown);
    background(known.or_else(|| Color::read(value)).unwrap_or(Color::Unknown))
}

/// The size of letters.
fn size(value: &str) -> Option<Value> {
    let relative = |value: &str, unit| value.strip_suffix(unit).and_then(|part| part.parse::<f64>().ok());
    if value.ends_with("rem") {
        return pixels(value).map(|size| Value::ZeroSize(Some(size <= INVISIBLE_SIZE)));
    }
    let part = relative(value, "em").or_else(|| relative(value, "%").map(|percent| percent / 100.0));
    if let Some(part) = part {
        // A small fraction of any size is invisible.
        return Some(Value::ZeroSize((part <= MIN_OPACITY).then_some(true)));
    }
    match value {
        "inherit" | "unset" | "larger" | "smaller" => Some(Value::ZeroSize(None)),
        _ => Some(Value::ZeroSize(Some(pixels(value).is_some_and(|size| size <= INVISIBLE_SIZE)))),
    }
}

/// The size in a `font` shorthand. Weights have no unit; sizes have a unit or are 0.
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

/// A length in pixels. Viewport units assume a window of 1,000 pixels. `None` for percentages and computed lengths.
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
        // Zero needs no unit, and 0 % is zero too.
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

/// The arguments of a function.
fn argument<'a>(value: &'a str, function: &str) -> Option<&'a str> {
    let (_, rest) = value.split_once(function)?;
    rest.trim_start().strip_prefix('(')?.split(')').next()
}

fn moves_off_screen(property: &str, value: &str) -> bool {
    let is_zero = |value: &str| number(value).is_some_and(|part| part.abs() <= MIN_OPACITY);
    let is_off_screen = |value: &str| pixels(value.trim()).is_some_and(|left| left <= OFF_SCREEN);
    if property != "transform" {
        let test: &dyn Fn(&str) -> bool = if property == "scale" { &is_zero } else { &is_off_screen };
        return value.split(' ').any(test);
    }
    let scales = ["scale", "scalex", "scaley", "scale3d"].iter().filter_map(|name| argument(value, name));
    let moves = ["translate", "translatex", "translatey", "translate3d"].iter();
    scales.flat_map(|values| values.split(',').take(2)).any(is_zero)
        || moves
            .filter_map(|name| argument(value, name))
            .flat_map(|values| values.split(',').take(2))
            .any(is_off_screen)
}

/// Whether a rectangle is empty, given its top, right, bottom and left edges.
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
        // Insets in lengths say nothing without the size of the box.
        return values.contains('%') && (both(side(0, 0), side(2, 0)) || both(side(1, 0), side(3, 1)));
    }
    if let Some(values) = argument(value, "circle") {
        return values.split(' ').next().and_then(pixels) == Some(0.0);
    }
    let is_zero = |value: &str| pixels(value) == Some(0.0);
    argument(value, "polygon")
        .is_some_and(|values| values.split([',', ' ']).filter(|v| !v.is_empty()).all(is_zero))
}
