//! The fill of shapes that contain text boxes.

use quick_xml::events::BytesStart;

use crate::{
    color,
    xml::{ElementKind, attribute},
};

/// The background of the text in a text box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeFill {
    /// Whatever is behind the box.
    Transparent,
    White,
    Colored,
}

/// A shape while it is parsed.
#[derive(Debug)]
pub(crate) struct Shape {
    /// How many containers were open at its start.
    pub(crate) depth: usize,
    fill: Option<ShapeFill>,
    style_fill: ShapeFill,
    in_properties: bool,
    in_outline: bool,
    /// Whether the next colour is that of its own fill.
    in_fill: bool,
    /// Whether the next colour is that of its style.
    in_style: bool,
}

impl Shape {
    pub(crate) fn new(depth: usize, kind: ElementKind, tag: &BytesStart<'_>) -> Self {
        let fill = (kind == ElementKind::VmlShape).then(|| vml_fill(tag));
        let style_fill = ShapeFill::Transparent;
        Self {
            depth,
            fill,
            style_fill,
            in_properties: false,
            in_outline: false,
            in_fill: false,
            in_style: false,
        }
    }

    pub(crate) fn fill(&self) -> ShapeFill {
        self.fill.unwrap_or(self.style_fill)
    }

    /// Applies a property of the shape.
    pub(crate) fn apply(&mut self, kind: ElementKind, tag: &BytesStart<'_>) {
        match kind {
            ElementKind::ShapeProperties => self.in_properties = true,
            ElementKind::Outline => self.in_outline = true,
            ElementKind::VmlFill => self.apply_vml_fill(tag),
            ElementKind::StyleFill => {
                let is_filled = attribute(tag, "idx").is_some_and(|index| index != "0");
                self.style_fill = if is_filled { ShapeFill::Colored } else { ShapeFill::Transparent };
                // The first fill of a theme is one colour; the others may be gradients.
                self.in_style = attribute(tag, "idx").is_some_and(|index| index == "1");
            }
            ElementKind::FillColor if self.in_style && is_white(tag) => self.style_fill = ShapeFill::White,
            ElementKind::Darker if self.in_style => self.style_fill = ShapeFill::Colored,
            _ if !self.in_properties || self.in_outline => {}
            ElementKind::NoFill => self.fill = Some(ShapeFill::Transparent),
            ElementKind::MultiColorFill => self.fill = Some(ShapeFill::Colored),
            ElementKind::SolidFill => (self.fill, self.in_fill) = (Some(ShapeFill::Colored), true),
            ElementKind::FillColor if self.in_fill && is_white(tag) => self.fill = Some(ShapeFill::White),
            ElementKind::Alpha if self.in_fill && is_transparent(tag) => {
                self.fill = Some(ShapeFill::Transparent);
            }
            ElementKind::Darker if self.in_fill && self.fill != Some(ShapeFill::Transparent) => {
                self.fill = Some(ShapeFill::Colored);
            }
            _ => {}
        }
    }

    pub(crate) const fn end(&mut self, kind: ElementKind) {
        match kind {
            ElementKind::ShapeProperties => self.in_properties = false,
            ElementKind::Outline => self.in_outline = false,
            ElementKind::SolidFill => self.in_fill = false,
            ElementKind::StyleFill => self.in_style = false,
            _ => {}
        }
    }

    /// Applies the fill element of a VML shape.
    fn apply_vml_fill(&mut self, tag: &BytesStart<'_>) {
        let is_off = attribute(tag, "on").is_some_and(|value| is_false(&value));
        let is_transparent = attribute(tag, "opacity").is_some_and(|value| is_zero(&value));
        if is_off || is_transparent {
            self.fill = Some(ShapeFill::Transparent);
        }
        let is_multicolor = attribute(tag, "type").is_some_and(|kind| kind != "solid");
        let is_colored = attribute(tag, "color").is_some_and(|color| !is_vml_white(&color));
        if self.fill != Some(ShapeFill::Transparent) && (is_multicolor || is_colored) {
            self.fill = Some(ShapeFill::Colored);
        }
    }
}

fn vml_fill(tag: &BytesStart<'_>) -> ShapeFill {
    match attribute(tag, "fillcolor") {
        _ if attribute(tag, "filled").is_some_and(|value| is_false(&value)) => ShapeFill::Transparent,
        // A line has no area to fill.
        _ if tag.local_name().as_ref() == "line" => ShapeFill::Transparent,
        Some(color) if !is_vml_white(&color) => ShapeFill::Colored,
        // VML shapes are white by default.
        _ => ShapeFill::White,
    }
}

/// Whether a VML colour is white: `white`, `#fff`, `#fefefe [3212]`.
fn is_vml_white(color: &str) -> bool {
    let color = color.split_whitespace().next().unwrap_or_default();
    let is_short_white = color.eq_ignore_ascii_case("#fff");
    is_short_white
        || matches!(color, "white" | "window")
        || color.strip_prefix('#').is_some_and(color::is_white)
}

fn is_false(value: &str) -> bool {
    matches!(value, "f" | "false" | "0")
}

/// Whether a VML opacity is zero: `0`, `0%`, `.0` or `0f` (in parts of 65,536).
fn is_zero(opacity: &str) -> bool {
    opacity.trim_end_matches(['f', '%']).parse::<f32>().is_ok_and(|part| part == 0.0)
}

/// Whether a colour is nearly transparent. Its alpha is in thousandths of a percent, or in percent.
fn is_transparent(tag: &BytesStart<'_>) -> bool {
    thousandths(tag, "val").is_some_and(|part| part <= 7000.0)
}

fn thousandths(tag: &BytesStart<'_>, name: &str) -> Option<f32> {
    let value = attribute(tag, name)?;
    match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f32>().ok().map(|percent| percent * 1000.0),
        None => value.parse().ok(),
    }
}

/// Whether a DrawingML colour is white. The page colours of the theme count as white.
fn is_white(tag: &BytesStart<'_>) -> bool {
    let value = attribute(tag, "val").unwrap_or_default();
    let last = attribute(tag, "lastClr").unwrap_or_default();
    let is_light = |part| thousandths(tag, part).is_some_and(|part| part >= 95_000.0);
    if ["r", "g", "b"].into_iter().all(is_light) {
        return true;
    }
    matches!(value.as_str(), "bg1" | "lt1" | "white") || color::is_white(&value) || color::is_white(&last)
}
