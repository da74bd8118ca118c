//! What keeps the words of elements from being seen.

use std::ops::Deref;

use crate::{
    css::{self, Facts, Origin, Paint, Property, Value},
    sheet::Sheet,
};

/// Less than one part in so many of a page is as good as nothing of it.
const NEXT_TO_NOTHING: usize = 10;

/// What hides fewer characters is believed, whatever is left.
const MANY_CHARS: usize = 2_000;

/// What is known of how words are seen in a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    is_sizeless: bool,
    is_invisible: bool,
    /// Whether the first line of a block begins far outside.
    is_indented: bool,
    /// Whether it is part of a drawing.
    is_drawing: bool,
    ink: Paint,
    ground: Paint,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            is_sizeless: false,
            is_invisible: false,
            is_indented: false,
            is_drawing: false,
            ink: Paint::Other,
            ground: Paint::WHITE,
        }
    }
}

impl Place {
    /// Whether words that stand here can be seen.
    pub(crate) fn shows(&self) -> bool {
        !(self.is_sizeless || self.is_invisible || self.is_indented || self.ink.is_lost_on(self.ground))
    }
}

/// Whether what is left of a page's characters is so little of all that what hid the rest is not to be believed.
pub(crate) const fn is_next_to_nothing(left: usize, all: usize) -> bool {
    left.saturating_mul(NEXT_TO_NOTHING) < all && all.saturating_sub(left) >= MANY_CHARS
}

/// Whether nothing in elements of that name is ever shown by a browser that runs scripts.
pub(crate) fn is_never_shown(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "iframe"
            | "noembed"
            | "noframes"
            | "noscript"
            | "datalist"
            | "audio"
            | "video"
            | "canvas"
    )
}

/// How words are seen in an element; none where nothing in it can be, whatever is said inside.
pub(crate) fn look<Text: Deref<Target = str>>(
    name: &str,
    attribute: impl Fn(&str) -> Option<Text>,
    sheet: &Sheet,
    around: &Place,
) -> Option<Place> {
    let has = |name: &str| attribute(name).is_some();
    let is_closed = name == "dialog" && !has("open");
    // Without anything to show, an object shows what it holds.
    let is_instead = name == "object" && (has("data") || has("type") || has("classid"));
    if is_closed || is_instead || is_never_shown(name) || has("hidden") {
        return None;
    }
    if around.is_drawing && matches!(name, "defs" | "desc" | "title" | "metadata") {
        return None;
    }
    let is_page = matches!(name, "html" | "body");
    let is_said = || attribute("aria-hidden").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    if !is_page && !sheet.keeps_aria_hidden && is_said() {
        return None;
    }
    let class = attribute("class");
    let is_formula = name == "mjx-assistive-mml"
        || class
            .as_deref()
            .is_some_and(|class| class.contains("MJX_Assistive_MathML") || class.contains("katex-mathml"));
    // Formulas are drawn elsewhere, and their words are hidden beneath.
    let mut facts = if is_formula { Facts::default() } else { sheet.facts(name, &attribute) };
    let is_awaited = is_awaited(class.as_deref().unwrap_or_default(), &facts);
    if is_awaited {
        facts.retain(|property, _| !property.is_hiding() && property != Property::Visibility);
    }
    hint(name, &attribute, &mut facts);
    if let Some(style) = attribute("style") {
        facts.merge(&Facts::read(&css::clean(&style), Origin::Own, 0));
    }
    let is_animated = facts.is(Property::Animation) && (sheet.is_animated || sheet.is_linked);
    if is_animated && !facts.is(Property::Display) {
        facts.retain(|property, _| !property.is_hiding() && property != Property::Visibility);
    }
    if hides(name, &facts) {
        return None;
    }
    let is_styled_elsewhere = sheet.is_linked && !is_page && (class.is_some() || has("id"));
    let may_have_ground = is_styled_elsewhere || is_awaited;
    Some(inside(name, &facts, sheet, around, may_have_ground))
}

/// Whether rules hide an element only until it comes into sight: scripts that load what is looked at then give it
/// another class, and the rest of its looks.
fn is_awaited(classes: &str, rules: &Facts) -> bool {
    let mut classes = classes.split_ascii_whitespace();
    classes.any(|class| matches!(class, "lazyload" | "lazyloading" | "lazy-load" | "lazy"))
        && !rules.is(Property::Display)
        && (rules.any_hides() || rules.is(Property::Visibility))
}

/// What old attributes say of colours.
fn hint<Text: Deref<Target = str>>(name: &str, attribute: impl Fn(&str) -> Option<Text>, facts: &mut Facts) {
    let paint = |value: Text| Paint::read(&value.trim().to_ascii_lowercase()).unwrap_or(Paint::Other);
    let ink = match name {
        "font" => attribute("color"),
        "body" => attribute("text"),
        _ => None,
    };
    if let Some(ink) = ink {
        facts.hint(Property::Color, Value::Paint(paint(ink)));
    }
    if let Some(ground) = attribute("bgcolor") {
        facts.hint(Property::Background, Value::Paint(paint(ground)));
    }
    if attribute("background").is_some() {
        facts.hint(Property::Picture, Value::Flag(true));
    }
}

/// Whether nothing in an element can be seen.
fn hides(name: &str, facts: &Facts) -> bool {
    if facts.is_empty() {
        return false;
    }
    let has_box = has_box(name, facts);
    let has_no_extent = [Property::Width, Property::MaxWidth, Property::Height, Property::MaxHeight]
        .into_iter()
        .any(|side| facts.is(side));
    let is_cut_off = has_box && has_no_extent && facts.is(Property::Overflow) && !facts.is(Property::Padding);
    let is_away = facts.is(Property::Lifted) && (facts.is(Property::Left) || facts.is(Property::Top));
    facts.any_hides() || is_cut_off || is_away
}

/// Whether an element has a box of its own: one in a line has neither a height nor an indentation.
fn has_box(name: &str, facts: &Facts) -> bool {
    let is_inline = matches!(
        name,
        "a" | "abbr"
            | "b"
            | "bdi"
            | "bdo"
            | "big"
            | "cite"
            | "code"
            | "del"
            | "dfn"
            | "em"
            | "font"
            | "i"
            | "ins"
            | "kbd"
            | "label"
            | "mark"
            | "q"
            | "s"
            | "samp"
            | "small"
            | "span"
            | "strike"
            | "strong"
            | "sub"
            | "sup"
            | "time"
            | "tt"
            | "u"
            | "var"
    );
    !is_inline || facts.is(Property::Boxed)
}

fn inside(name: &str, facts: &Facts, sheet: &Sheet, around: &Place, may_have_ground: bool) -> Place {
    let mut place = *around;
    match name {
        "svg" => place.is_drawing = true,
        "foreignObject" | "foreignobject" => place.is_drawing = false,
        // They have colours of their own.
        "button" | "input" | "select" | "textarea" | "mark" => {
            (place.ink, place.ground) = (Paint::Other, Paint::Other);
        }
        "a" => place.ink = if place.ink == Paint::Clear { Paint::Clear } else { Paint::Other },
        _ => {}
    }
    if let Some(Value::Flag(is_invisible)) = facts.get(Property::Visibility) {
        place.is_invisible = is_invisible;
    }
    if let Some(Value::Sizeless(Some(is_sizeless))) = facts.get(Property::FontSize) {
        place.is_sizeless = is_sizeless;
    }
    if let Some(Value::Flag(is_indented)) = facts.get(Property::Indent) {
        place.is_indented = is_indented && has_box(name, facts);
    }
    let is_over_picture = facts.is(Property::Lifted) && sheet.has_pictures;
    match facts.paint(Property::Background) {
        _ if facts.is(Property::Picture) || is_over_picture || sheet.has_ground => {
            place.ground = Paint::Other;
        }
        Some(Paint::Clear | Paint::Inherited) | None if may_have_ground => place.ground = Paint::Other,
        Some(Paint::Clear | Paint::Inherited) | None => {}
        Some(ground) => place.ground = ground,
    }
    match facts.paint(Property::Color) {
        Some(Paint::Inherited) => place.ink = around.ink,
        Some(ink) => place.ink = ink,
        None => {}
    }
    if facts.is(Property::Drawn) {
        place.ink = Paint::Other;
    }
    place
}
