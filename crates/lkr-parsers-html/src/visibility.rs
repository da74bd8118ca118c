//! Decides whether the text of elements is visible.

use std::ops::Deref;

use crate::{
    css::{Color, Declarations, Property, Specificity, Style, Value},
    style_sheet::StyleSheet,
};

/// Rules that leave less than one part in this many of a page visible are not trusted. See docs/studies.md#hidden-text.
const MIN_VISIBLE_PART: usize = 10;

/// Rules that hide fewer characters than this are always trusted. See docs/studies.md#hidden-text.
const MIN_HIDDEN_CHARS: usize = 2_000;

const NEVER_SHOWN: [&str; 13] = [
    "script",
    "style",
    "template",
    "iframe",
    "noembed",
    "noframes",
    "noscript",
    "datalist",
    "audio",
    "video",
    "canvas",
    // Other forms of a formula.
    "annotation",
    "annotation-xml",
];

const INLINE_ELEMENTS: [&str; 30] = [
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
    "var",
];

/// The properties that decide whether text in an element is visible.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextVisibility {
    is_zero_size: bool,
    is_invisible: bool,
    /// Whether the first line of a block begins off screen.
    is_indented_off_screen: bool,
    /// Whether the text is part of an SVG drawing.
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
    /// Whether text in this element is visible.
    pub(crate) fn is_visible(&self) -> bool {
        !(self.is_zero_size
            || self.is_invisible
            || self.is_indented_off_screen
            || self.foreground.is_invisible_on(self.background))
    }
}

/// Whether so few of a page's characters are visible that the rules which hide the rest are not trusted.
pub(crate) const fn leaves_too_little(visible: usize, all: usize) -> bool {
    visible.saturating_mul(MIN_VISIBLE_PART) < all && all.saturating_sub(visible) >= MIN_HIDDEN_CHARS
}

/// Whether a browser that runs scripts never shows the content of elements with this name.
pub(crate) fn is_never_shown(name: &str) -> bool {
    NEVER_SHOWN.contains(&name)
}

/// The visibility of text in an element; `None` if nothing inside it can be visible.
pub(crate) fn visibility_in<Text: Deref<Target = str>>(
    name: &str,
    attribute: impl Fn(&str) -> Option<Text>,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
) -> Option<TextVisibility> {
    let is_page = matches!(name, "html" | "body");
    if is_hidden_by_attributes(name, &attribute, style_sheet, outer) {
        return None;
    }
    let class = attribute("class");
    let has_class_or_id = class.is_some() || attribute("id").is_some();
    let class = class.as_deref().unwrap_or_default();
    let mut style =
        if is_formula(name, class) { Style::default() } else { style_sheet.style_of(name, &attribute) };
    let is_lazy_loaded = is_lazy_loaded(class, &style);
    if is_lazy_loaded {
        forget_hiding(&mut style);
    }
    add_presentational_hints(name, &attribute, &mut style);
    if let Some(inline) = attribute("style") {
        style.merge(&Style::new(&Declarations::parse(&inline), Specificity::Inline, 0));
    }
    let is_animated =
        style.is_set(Property::Animation) && (style_sheet.has_animations || style_sheet.has_linked_sheets);
    if is_animated && !style.is_set(Property::Display) {
        forget_hiding(&mut style);
    }
    if hides_content(name, &style) {
        return None;
    }
    let is_styled_elsewhere = style_sheet.has_linked_sheets && !is_page && has_class_or_id;
    let may_have_background = is_styled_elsewhere || is_lazy_loaded;
    Some(inherit(name, &style, style_sheet, outer, may_have_background))
}

/// Whether the name or the attributes of an element hide all its content, whatever its style.
fn is_hidden_by_attributes<Text: Deref<Target = str>>(
    name: &str,
    attribute: impl Fn(&str) -> Option<Text>,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
) -> bool {
    let has = |name: &str| attribute(name).is_some();
    let is_closed = name == "dialog" && !has("open");
    // An object without data shows its content.
    let is_fallback = name == "object" && (has("data") || has("type") || has("classid"));
    if is_closed || is_fallback || is_never_shown(name) || has("hidden") {
        return true;
    }
    if outer.is_in_svg && matches!(name, "defs" | "desc" | "title" | "metadata") {
        return true;
    }
    let is_page = matches!(name, "html" | "body");
    let is_aria_hidden =
        || attribute("aria-hidden").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    !is_page && !style_sheet.ignores_aria_hidden && is_aria_hidden()
}

/// Whether an element holds the text of a formula that other elements draw. Its text is kept although rules hide it.
fn is_formula(name: &str, classes: &str) -> bool {
    name == "mjx-assistive-mml"
        || classes.contains("MJX_Assistive_MathML")
        || classes.contains("katex-mathml")
}

/// Removes all that hides an element for now, but may show it later.
fn forget_hiding(style: &mut Style) {
    style.retain(|property, _| !property.is_hiding() && property != Property::Visibility);
}

/// Whether rules hide an element only until it is scrolled into view: scripts that load such elements then give them
/// another class.
fn is_lazy_loaded(classes: &str, rules: &Style) -> bool {
    let mut classes = classes.split_ascii_whitespace();
    classes.any(|class| matches!(class, "lazyload" | "lazyloading" | "lazy-load" | "lazy"))
        && !rules.is_set(Property::Display)
        && (rules.hides() || rules.is_set(Property::Visibility))
}

/// Adds the colours of obsolete attributes such as `bgcolor`.
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

/// Whether a style hides all content of an element.
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

/// Whether an element has a box of its own. Inline elements have neither a height nor an indentation.
fn has_box(name: &str, style: &Style) -> bool {
    let is_inline = INLINE_ELEMENTS.contains(&name);
    !is_inline || style.is_set(Property::OwnBox)
}

/// The visibility inside an element, from that around it and the element's style.
fn inherit(
    name: &str,
    style: &Style,
    style_sheet: &StyleSheet,
    outer: &TextVisibility,
    may_have_background: bool,
) -> TextVisibility {
    let mut visibility = *outer;
    apply_defaults(name, &mut visibility);
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
            visibility.background = Color::Unknown;
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

/// Applies what browsers do with an element without a style sheet.
fn apply_defaults(name: &str, visibility: &mut TextVisibility) {
    match name {
        "svg" => visibility.is_in_svg = true,
        "foreignObject" | "foreignobject" => visibility.is_in_svg = false,
        // Browsers give these their own colours.
        "button" | "input" | "select" | "textarea" | "mark" => {
            (visibility.foreground, visibility.background) = (Color::Unknown, Color::Unknown);
        }
        "a" => {
            visibility.foreground =
                if visibility.foreground == Color::Transparent { Color::Transparent } else { Color::Unknown }
        }
        _ => {}
    }
}
