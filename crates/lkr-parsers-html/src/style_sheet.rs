//! The rules of a page's own style sheets, as far as they decide whether text is visible.
//!
//! Only rules for a tag, a class, an id, or a tag with a class or an id can hide text. All other rules are conditional:
//! they depend on the position of an element, the window, the pointer or a script. They can only show text.

use std::{collections::HashMap, ops::Deref};

use crate::{
    css::{Color, Declarations, Property, Rules, Specificity, Style, Value},
    sanitize,
};

/// Style sheets of a page beyond this many bytes are not read.
const MAX_BYTES: usize = 1024 * 1024;

/// Selectors of a page beyond this many are ignored.
const MAX_SELECTORS: usize = 20_000;

/// Classes of an element beyond this many are ignored.
const MAX_CLASSES: usize = 64;

/// What a page declares about the look of its elements.
#[derive(Debug, Clone, Default)]
pub(crate) struct StyleSheet {
    rules: HashMap<String, Style>,
    selector_count: usize,
    /// Whether there are style sheets outside of the page.
    pub(crate) has_linked_sheets: bool,
    /// Whether there are images that may be behind text.
    pub(crate) has_images: bool,
    /// Whether animations may show text that is hidden at first.
    pub(crate) has_animations: bool,
    /// Whether any element may have a background.
    pub(crate) may_have_background: bool,
    /// Whether `aria-hidden` is ignored.
    pub(crate) ignores_aria_hidden: bool,
}

impl StyleSheet {
    /// Reads the style sheets of a page.
    pub(crate) fn from_page(html: &str) -> Self {
        let found = sanitize::find_styles(html);
        let mut style_sheet =
            Self { has_linked_sheets: found.has_links, has_images: found.has_images, ..Self::default() };
        let mut room = MAX_BYTES;
        for (css, is_unconditional) in found.sheets {
            let css = css.get(..css.floor_char_boundary(room)).unwrap_or_default();
            room -= css.len();
            style_sheet.add_rules(&Rules::parse(css), is_unconditional);
        }
        style_sheet
    }

    /// The same without rules, and ignoring `aria-hidden`.
    pub(crate) fn without_rules(&self) -> Self {
        Self { rules: HashMap::new(), ignores_aria_hidden: true, ..self.clone() }
    }

    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The style that the rules give an element.
    pub(crate) fn style_of<Text: Deref<Target = str>>(
        &self,
        name: &str,
        attribute: impl Fn(&str) -> Option<Text>,
    ) -> Style {
        let mut style = Style::default();
        if self.rules.is_empty() {
            return style;
        }
        let mut add = |key: &str| {
            if let Some(rule) = self.rules.get(key) {
                style.merge(rule);
            }
        };
        add(name);
        for class in attribute("class").iter().flat_map(|all| all.split_ascii_whitespace()).take(MAX_CLASSES)
        {
            add(&format!(".{class}"));
            add(&format!("{name}.{class}"));
        }
        if let Some(id) = attribute("id") {
            add(&format!("#{}", id.trim()));
            add(&format!("{name}#{}", id.trim()));
        }
        if matches!(name, "html" | "body") {
            // Many pages hide these until their scripts have run.
            style.retain(|_, value| matches!(value, Value::Color(_)));
        }
        style
    }

    /// Adds the rules of a style sheet. `is_unconditional` is false if the sheet is for some media only.
    fn add_rules(&mut self, parsed: &Rules, is_unconditional: bool) {
        self.has_linked_sheets |= parsed.has_imports;
        self.has_animations |= parsed.has_keyframes;
        for rule in &parsed.rules {
            let is_conditional = rule.is_conditional || rule.declarations.has_nested_rules;
            self.add(&rule.selectors, &rule.declarations, is_unconditional && !is_conditional);
        }
    }

    fn add(&mut self, selectors: &str, declarations: &Declarations, is_unconditional: bool) {
        let order = self.selector_count;
        let conditional_style = || {
            let mut style = Style::new(declarations, Specificity::Conditional, order);
            style.retain(|_, value| may_show(value));
            style.forget_colors();
            style
        };
        // One style for each specificity, made when it is first needed.
        let mut styles: [Option<Style>; 4] = [None, None, None, None];
        for selector in selectors_of(selectors) {
            self.selector_count += 1;
            if self.selector_count > MAX_SELECTORS {
                return;
            }
            if let Some(specificity) = simple_selector(selector).filter(|_| is_unconditional) {
                let style = styles
                    .get_mut(specificity as usize)
                    .map(|style| style.get_or_insert_with(|| Style::new(declarations, specificity, order)));
                self.merge(selector, style.as_deref().filter(|style| !style.is_empty()));
                continue;
            }
            let style: &Style = styles[3].get_or_insert_with(conditional_style);
            if style.is_empty() || selects_pseudo_element(selector) {
                continue;
            }
            let keys = subject_keys(selector);
            let has_background =
                style.color(Property::Background).is_some() || style.is_set(Property::BackgroundImage);
            self.may_have_background |= keys.is_empty() && has_background;
            for key in keys {
                self.merge(&key, Some(style));
            }
        }
    }

    fn merge(&mut self, key: &str, style: Option<&Style>) {
        if let Some(style) = style {
            // Tags are case-insensitive.
            let is_tag = key.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let key = if is_tag { key.to_ascii_lowercase() } else { key.to_owned() };
            self.rules.entry(key).or_default().merge(style);
        }
    }
}

/// Whether a conditional declaration counts: it does if it may make text visible.
fn may_show(value: Value) -> bool {
    match value {
        Value::Flag(hides) => !hides,
        Value::ZeroSize(size) => size == Some(false),
        Value::Color(color) => !matches!(color, Color::Transparent | Color::WHITE),
    }
}

/// The selectors of a list. Commas in brackets do not separate them.
fn selectors_of(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    list.split(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
}

/// The specificity of a tag, a class or an id, the latter two with or without a tag; `None` for other selectors.
fn simple_selector(selector: &str) -> Option<Specificity> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let is_tag = |name: &str| name.is_empty() || is_name(name);
    if is_name(selector) {
        return Some(Specificity::Tag);
    }
    let (sign, specificity) =
        if selector.contains('#') { ('#', Specificity::Id) } else { ('.', Specificity::Class) };
    let (tag, name) = selector.split_once(sign)?;
    (is_tag(tag) && is_name(name)).then_some(specificity)
}

fn selects_pseudo_element(selector: &str) -> bool {
    [":before", ":after", "::"].iter().any(|marker| selector.contains(marker))
}

/// The classes and the id that a selector requires of its subject (its last element), or else the tag.
fn subject_keys(selector: &str) -> Vec<String> {
    let plain = selector.split(['(', '[']).next().unwrap_or_default();
    // Brackets may be followed by further elements.
    let after_brackets = selector.rsplit([')', ']']).next().unwrap_or_default();
    let subject = if plain.len() == selector.len() || after_brackets.contains([' ', '>', '+', '~']) {
        after_brackets
    } else {
        plain
    };
    let last = subject.trim().rsplit([' ', '>', '+', '~']).next().unwrap_or_default();
    let last = last.split(':').next().unwrap_or_default();
    let ends = last.char_indices().filter(|(_, c)| matches!(c, '.' | '#')).map(|(at, _)| at);
    let starts: Vec<usize> = ends.take(8).collect();
    let ends = starts.iter().skip(1).copied().chain([last.len()]);
    let keys = starts.iter().zip(ends).filter_map(|(start, end)| last.get(*start..end)).map(str::to_owned);
    let keys: Vec<String> = keys.filter(|key| key.len() > 1).collect();
    if keys.is_empty() && !last.is_empty() && last != "*" && last != "&" {
        return vec![last.to_ascii_lowercase()];
    }
    keys
}
