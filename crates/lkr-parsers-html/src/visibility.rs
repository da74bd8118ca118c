//! What keeps the words of elements from being seen.

use std::ops::Deref;

use crate::{
    css::{Color, Declarations, Property, Specificity, Style, Value},
    style_sheet::StyleSheet,
};

/// Less than one part in so many of a page is as good as nothing of it.
const MIN_VISIBLE_PART: usize = 10;

/// What hides fewer characters is believed, whatever is left.
const MIN_HIDDEN_CHARS: usize = 2_000;

/// What is known of how words are seen in a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextVisibility {
    is_zero_size: bool,
    is_invisible: bool,
    /// Whether the first line of a block begins far outside.
    is_indented_off_screen: bool,
    /// Whether it is part of a drawing.
    is_in_svg: bool,
    foreground: Color,
    background: Color,
}

impl Default for TextVisibility {
    fn default() -> Self {
        Self {
            is_zero_size: false,
            is_invisible: false,
            is_indented_off_screen: false,
            is_in_svg: false,
            foreground: Color::Unknown,
            background: Color::WHITE,
        }
    }
}

impl TextVisibility {
    /// Whether words that stand here can be seen.
    pub(crate) fn is_visible(&self) -> bool {
        !(self.is_zero_size
            || self.is_invisible
            || self.is_indented_off_screen
            || self.foreground.is_invisible_on(self.background))
    }
}

/// Whether what is left of a page's characters is so little of all that what hid the rest is not to be believed.
pub(crate) const fn leaves_too_little(visible: usize, all: usize) -> bool {
    visible.saturating_mul(MIN_VISIBLE_PART) < all && all.saturating_sub(visible) >= MIN_HIDDEN_CHARS
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
pub(crate) fn visibility_in<Text: Deref<Target = str>>(
    name: &str,
    attribute: impl Fn(&str) -> Option<Text>,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
) -> Option<TextVisibility> {
    let has = |name: &str| attribute(name).is_some();
    let is_closed = name == "dialog" && !has("open");
    // Without anything to show, an object shows what it holds.
    let is_fallback = name == "object" && (has("data") || has("type") || has("classid"));
    if is_closed || is_fallback || is_never_shown(name) || has("hidden") {
        return None;
    }
    if outer.is_in_svg && matches!(name, "defs" | "desc" | "title" | "metadata") {
        return None;
    }
    let is_page = matches!(name, "html" | "body");
    let has_aria_hidden =
        || attribute("aria-hidden").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    if !is_page && !style_sheet.ignores_aria_hidden && has_aria_hidden() {
        return None;
    }
    let class = attribute("class");
    let is_formula = name == "mjx-assistive-mml"
        || class
            .as_deref()
            .is_some_and(|class| class.contains("MJX_Assistive_MathML") || class.contains("katex-mathml"));
    // Formulas are drawn elsewhere, and their words are hidden beneath.
    let mut style = if is_formula { Style::default() } else { style_sheet.style_of(name, &attribute) };
    let is_lazy_loaded = is_lazy_loaded(class.as_deref().unwrap_or_default(), &style);
    if is_lazy_loaded {
        style.retain(|property, _| !property.is_hiding() && property != Property::Visibility);
    }
    add_presentational_hints(name, &attribute, &mut style);
    if let Some(inline) = attribute("style") {
        style.merge(&Style::new(&Declarations::parse(&inline), Specificity::Inline, 0));
    }
    let is_animated =
        style.is_set(Property::Animation) && (style_sheet.has_animations || style_sheet.has_linked_sheets);
    if is_animated && !style.is_set(Property::Display) {
        style.retain(|property, _| !property.is_hiding() && property != Property::Visibility);
    }
    if hides_content(name, &style) {
        return None;
    }
    let is_styled_elsewhere = style_sheet.has_linked_sheets && !is_page && (class.is_some() || has("id"));
    let may_have_background = is_styled_elsewhere || is_lazy_loaded;
    Some(inside(name, &style, style_sheet, outer, may_have_background))
}

/// Whether rules hide an element only until it comes into sight: scripts that load what is looked at then give it
/// another class, and the rest of its looks.
fn is_lazy_loaded(classes: &str, rules: &Style) -> bool {
    let mut classes = classes.split_ascii_whitespace();
    classes.any(|class| matches!(class, "lazyload" | "lazyloading" | "lazy-load" | "lazy"))
        && !rules.is_set(Property::Display)
        && (rules.hides() || rules.is_set(Property::Visibility))
}

/// What old attributes say of colours.
fn add_presentational_hints<Text: Deref<Target = str>>(
    name: &str,
    attribute: impl Fn(&str) -> Option<Text>,
    style: &mut Style,
) {
    let color = |value: Text| Color::read(&value.trim().to_ascii_lowercase()).unwrap_or(Color::Unknown);
    let foreground = match name {
        "font" => attribute("color"),
        "body" => attribute("text"),
        _ => None,
    };
    if let Some(foreground) = foreground {
        style.add_hint(Property::Color, Value::Color(color(foreground)));
    }
    if let Some(background) = attribute("bgcolor") {
        style.add_hint(Property::Background, Value::Color(color(background)));
    }
    if attribute("background").is_some() {
        style.add_hint(Property::BackgroundImage, Value::Flag(true));
    }
}

/// Whether nothing in an element can be seen.
fn hides_content(name: &str, style: &Style) -> bool {
    if style.is_empty() {
        return false;
    }
    let has_box = has_box(name, style);
    let has_no_extent = [Property::Width, Property::MaxWidth, Property::Height, Property::MaxHeight]
        .into_iter()
        .any(|side| style.is_set(side));
    let is_cut_off =
        has_box && has_no_extent && style.is_set(Property::Overflow) && !style.is_set(Property::Padding);
    let is_away =
        style.is_set(Property::OutOfFlow) && (style.is_set(Property::Left) || style.is_set(Property::Top));
    style.hides() || is_cut_off || is_away
}

/// Whether an element has a box of its own: one in a line has neither a height nor an indentation.
fn has_box(name: &str, style: &Style) -> bool {
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
    !is_inline || style.is_set(Property::OwnBox)
}

fn inside(
    name: &str,
    style: &Style,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
    may_have_background: bool,
) -> TextVisibility {
    let mut visibility = *outer;
    match name {
        "svg" => visibility.is_in_svg = true,
        "foreignObject" | "foreignobject" => visibility.is_in_svg = false,
        // They have colours of their own.
        "button" | "input" | "select" | "textarea" | "mark" => {
            (visibility.foreground, visibility.background) = (Color::Unknown, Color::Unknown);
        }
        "a" => {
            visibility.foreground =
                if visibility.foreground == Color::Transparent { Color::Transparent } else { Color::Unknown }
        }
        _ => {}
    }
    if let Some(Value::Flag(is_invisible)) = style.get(Property::Visibility) {
        visibility.is_invisible = is_invisible;
    }
    if let Some(Value::ZeroSize(Some(is_zero_size))) = style.get(Property::FontSize) {
        visibility.is_zero_size = is_zero_size;
    }
    if let Some(Value::Flag(is_indented_off_screen)) = style.get(Property::Indent) {
        visibility.is_indented_off_screen = is_indented_off_screen && has_box(name, style);
    }
    let is_over_image = style.is_set(Property::OutOfFlow) && style_sheet.has_images;
    match style.color(Property::Background) {
        _ if style.is_set(Property::BackgroundImage) || is_over_image || style_sheet.may_have_background => {
            visibility.background = Color::Unknown;
        }
        Some(Color::Transparent | Color::Inherited) | None if may_have_background => {
            visibility.background = Color::Unknown
        }
        Some(Color::Transparent | Color::Inherited) | None => {}
        Some(background) => visibility.background = background,
    }
    match style.color(Property::Color) {
        Some(Color::Inherited) => visibility.foreground = outer.foreground,
        Some(foreground) => visibility.foreground = foreground,
        None => {}
    }
    if style.is_set(Property::TextEffect) {
        visibility.foreground = Color::Unknown;
    }
    visibility
}
