//! Shapes that hold text boxes: what they are filled with.

use quick_xml::events::BytesStart;

use crate::{
    color,
    xml::{Kind, attribute},
};

/// What lies behind the words in a text box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Nothing of its own: whatever lies behind the box.
    Clear,
    White,
    Colored,
}

/// A shape while it is read.
#[derive(Debug)]
pub(crate) struct Shape {
    /// How many frames were open where it began.
    pub(crate) depth: usize,
    ground: Option<Ground>,
    of_style: Ground,
    in_properties: bool,
    in_outline: bool,
    /// Whether it is the colour of its own filling that comes.
    in_fill: bool,
    /// Whether it is the colour that its style is filled with that comes.
    in_style: bool,
}

impl Shape {
    pub(crate) fn new(depth: usize, kind: Kind, tag: &BytesStart<'_>) -> Self {
        let ground = (kind == Kind::OldShape).then(|| old_ground(tag));
        let of_style = Ground::Clear;
        Self {
            depth,
            ground,
            of_style,
            in_properties: false,
            in_outline: false,
            in_fill: false,
            in_style: false,
        }
    }

    pub(crate) fn ground(&self) -> Ground {
        self.ground.unwrap_or(self.of_style)
    }

    /// Takes in what is said of the shape.
    pub(crate) fn describe(&mut self, kind: Kind, tag: &BytesStart<'_>) {
        match kind {
            Kind::ShapeProperties => self.in_properties = true,
            Kind::Outline => self.in_outline = true,
            Kind::OldFill => self.refill(tag),
            Kind::StyleFill => {
                let is_filled = attribute(tag, "idx").is_some_and(|index| index != "0");
                self.of_style = if is_filled { Ground::Colored } else { Ground::Clear };
                // The first filling of a style is one colour, and no other filling surely is.
                self.in_style = attribute(tag, "idx").is_some_and(|index| index == "1");
            }
            Kind::FillColor if self.in_style && is_white(tag) => self.of_style = Ground::White,
            Kind::Darker if self.in_style => self.of_style = Ground::Colored,
            _ if !self.in_properties || self.in_outline => {}
            Kind::NoFill => self.ground = Some(Ground::Clear),
            Kind::RichFill => self.ground = Some(Ground::Colored),
            Kind::PlainFill => (self.ground, self.in_fill) = (Some(Ground::Colored), true),
            Kind::FillColor if self.in_fill && is_white(tag) => self.ground = Some(Ground::White),
            Kind::Alpha if self.in_fill && is_clear(tag) => self.ground = Some(Ground::Clear),
            Kind::Darker if self.in_fill && self.ground != Some(Ground::Clear) => {
                self.ground = Some(Ground::Colored);
            }
            _ => {}
        }
    }

    pub(crate) const fn shut(&mut self, kind: Kind) {
        match kind {
            Kind::ShapeProperties => self.in_properties = false,
            Kind::Outline => self.in_outline = false,
            Kind::PlainFill => self.in_fill = false,
            Kind::StyleFill => self.in_style = false,
            _ => {}
        }
    }

    /// Takes in how an old shape is filled beside the colour that it names.
    fn refill(&mut self, tag: &BytesStart<'_>) {
        let is_off = attribute(tag, "on").is_some_and(|value| is_false(&value));
        let is_clear = attribute(tag, "opacity").is_some_and(|value| is_nothing(&value));
        if is_off || is_clear {
            self.ground = Some(Ground::Clear);
        }
        let is_rich = attribute(tag, "type").is_some_and(|kind| kind != "solid");
        let is_colored = attribute(tag, "color").is_some_and(|color| !is_old_white(&color));
        if self.ground != Some(Ground::Clear) && (is_rich || is_colored) {
            self.ground = Some(Ground::Colored);
        }
    }
}

fn old_ground(tag: &BytesStart<'_>) -> Ground {
    match attribute(tag, "fillcolor") {
        _ if attribute(tag, "filled").is_some_and(|value| is_false(&value)) => Ground::Clear,
        // A line has nothing inside that could be filled.
        _ if tag.local_name().as_ref() == "line" => Ground::Clear,
        Some(color) if !is_old_white(&color) => Ground::Colored,
        // Old shapes are white unless they say otherwise.
        _ => Ground::White,
    }
}

/// Whether a colour of an old drawing is white: `white`, `#fff`, `#fefefe [3212]`.
fn is_old_white(color: &str) -> bool {
    let color = color.split_whitespace().next().unwrap_or_default();
    let is_short_white = color.eq_ignore_ascii_case("#fff");
    is_short_white
        || matches!(color, "white" | "window")
        || color.strip_prefix('#').is_some_and(color::is_white)
}

fn is_false(value: &str) -> bool {
    matches!(value, "f" | "false" | "0")
}

/// Whether how much an old filling covers is nothing: `0`, `0%`, `.0` or `0f`, which is in parts of 65,536.
fn is_nothing(opacity: &str) -> bool {
    opacity.trim_end_matches(['f', '%']).parse::<f32>().is_ok_and(|part| part == 0.0)
}

/// Whether a colour covers next to nothing. It says so in thousandths of a percent, or in percent.
fn is_clear(tag: &BytesStart<'_>) -> bool {
    thousandths(tag, "val").is_some_and(|part| part <= 7000.0)
}

fn thousandths(tag: &BytesStart<'_>, name: &str) -> Option<f32> {
    let value = attribute(tag, name)?;
    match value.strip_suffix('%') {
        Some(percent) => percent.parse::<f32>().ok().map(|percent| percent * 1000.0),
        None => value.parse().ok(),
    }
}

/// Whether a colour of a drawing is white. Of a theme's colours those of the paper are.
fn is_white(tag: &BytesStart<'_>) -> bool {
    let value = attribute(tag, "val").unwrap_or_default();
    let last = attribute(tag, "lastClr").unwrap_or_default();
    let is_light = |part| thousandths(tag, part).is_some_and(|part| part >= 95_000.0);
    if ["r", "g", "b"].into_iter().all(is_light) {
        return true;
    }
    matches!(value.as_str(), "bg1" | "lt1" | "white") || color::is_white(&value) || color::is_white(&last)
}
