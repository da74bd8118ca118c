//! The rules of a page's own style sheets, as far as they tell whether words can be seen.
//!
//! Only rules for a tag, a class, an id, or a tag with one of those hide. All others may hold or not, as they depend on
//! the place of an element, the window, the pointer or a script: what they show counts as shown.

use std::{collections::HashMap, ops::Deref};

use crate::{
    css::{self, Facts, Origin, Paint, Property, Value},
    guard,
};

/// So much of a page's style sheets is read.
const MAX_BYTES: usize = 1024 * 1024;

/// No more selectors are followed.
const MAX_SELECTORS: usize = 20_000;

/// So many classes of an element are looked up.
const MAX_CLASSES: usize = 64;

/// What a page says of how its elements look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    rules: HashMap<String, Facts>,
    selectors: usize,
    /// Whether there are style sheets that are not part of the page.
    pub(crate) is_linked: bool,
    /// Whether there are pictures that words can stand on.
    pub(crate) has_pictures: bool,
    /// Whether animations may show what is hidden at first.
    pub(crate) is_animated: bool,
    /// Whether something may be behind the words anywhere.
    pub(crate) has_ground: bool,
    /// Whether `aria-hidden` hides nothing.
    pub(crate) keeps_aria_hidden: bool,
}

impl Sheet {
    /// Reads the style sheets of a page.
    pub(crate) fn of(html: &str) -> Self {
        let found = guard::styles(html);
        let mut sheet =
            Self { is_linked: found.is_linked, has_pictures: found.has_pictures, ..Self::default() };
        let mut room = MAX_BYTES;
        for (css, is_plain) in found.sheets {
            let mut end = css.len().min(room);
            while !css.is_char_boundary(end) {
                end -= 1;
            }
            room -= end;
            let css = css.get(..end).unwrap_or_default().replace("<!--", " ").replace("-->", " ");
            sheet.read(&css::clean(&css), is_plain);
        }
        sheet
    }

    /// The same without its rules, and without heed to `aria-hidden`.
    pub(crate) fn lenient(&self) -> Self {
        Self { rules: HashMap::new(), keeps_aria_hidden: true, ..self.clone() }
    }

    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// What the rules say of an element.
    pub(crate) fn facts<Text: Deref<Target = str>>(
        &self,
        name: &str,
        attribute: impl Fn(&str) -> Option<Text>,
    ) -> Facts {
        let mut facts = Facts::default();
        if self.rules.is_empty() {
            return facts;
        }
        let mut add = |key: &str| {
            if let Some(rule) = self.rules.get(key) {
                facts.merge(rule);
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
            // Pages are hidden so until their scripts have run.
            facts.retain(|_, value| matches!(value, Value::Paint(_)));
        }
        facts
    }

    /// Reads a style sheet that was cleaned. `is_plain` tells that nothing but its selectors decides whether it holds.
    fn read(&mut self, css: &str, is_plain: bool) {
        let mut rest = css;
        // For each block that is open, whether its rules hold.
        let mut open: Vec<bool> = Vec::new();
        while let Some(at) = rest.find(['{', '}', ';']) {
            let prelude = rest.get(..at).unwrap_or_default().trim();
            let mark = rest.get(at..=at);
            rest = rest.get(at + 1..).unwrap_or_default();
            if mark == Some("}") {
                open.pop();
            }
            if mark != Some("{") {
                self.is_linked |= prelude.starts_with("@import");
                continue;
            }
            let Some(at_rule) = prelude.strip_prefix('@') else {
                let (body, after) = block(rest);
                rest = after;
                let is_plain = is_plain && open.is_empty() && !body.contains('{');
                self.add(prelude, body, is_plain);
                continue;
            };
            let name = at_rule.to_ascii_lowercase();
            let is_group =
                ["media", "supports", "layer", "container"].iter().any(|group| name.starts_with(group));
            let is_of_paper = name.starts_with("media") && name.contains("print") && !name.contains(',');
            if is_group && !is_of_paper && open.len() < 16 {
                open.push(false);
                continue;
            }
            self.is_animated |= name.contains("keyframes");
            rest = block(rest).1;
        }
    }

    /// Adds a rule.
    fn add(&mut self, selectors: &str, body: &str, is_plain: bool) {
        let order = self.selectors;
        let perhaps = || {
            let mut facts = Facts::read(body, Origin::Perhaps, order);
            facts.retain(|_, value| may_show(value));
            facts.blur();
            facts
        };
        let mut read: [Option<Facts>; 4] = [None, None, None, None];
        for selector in selectors_of(selectors) {
            self.selectors += 1;
            if self.selectors > MAX_SELECTORS {
                return;
            }
            if let Some(origin) = simple(selector).filter(|_| is_plain) {
                let facts = read
                    .get_mut(origin as usize)
                    .map(|facts| facts.get_or_insert_with(|| Facts::read(body, origin, order)));
                self.join(selector, facts.as_deref().filter(|facts| !facts.is_empty()));
                continue;
            }
            let facts: &Facts = read[3].get_or_insert_with(perhaps);
            if facts.is_empty() || is_of_pseudo_element(selector) {
                continue;
            }
            let keys = last_keys(selector);
            let has_ground = facts.paint(Property::Background).is_some() || facts.is(Property::Picture);
            self.has_ground |= keys.is_empty() && has_ground;
            for key in keys {
                self.join(&key, Some(facts));
            }
        }
    }

    fn join(&mut self, key: &str, facts: Option<&Facts>) {
        if let Some(facts) = facts {
            // Tags may be written in capital letters.
            let is_tag = key.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let key = if is_tag { key.to_ascii_lowercase() } else { key.to_owned() };
            self.rules.entry(key).or_default().merge(facts);
        }
    }
}

/// Whether a declaration that may hold or not counts: what it hides does not.
fn may_show(value: Value) -> bool {
    match value {
        Value::Flag(hides) => !hides,
        Value::Sizeless(size) => size == Some(false),
        Value::Paint(paint) => !matches!(paint, Paint::Clear | Paint::WHITE),
    }
}

/// The block that begins, without its last bracket, and what follows it.
fn block(css: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    for (at, byte) in css.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => {
                return (css.get(..at).unwrap_or_default(), css.get(at + 1..).unwrap_or_default());
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    (css, "")
}

/// The selectors of a list; commas in brackets part none.
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

/// What a selector is of, where it is a tag, a class or an id, the latter two with a tag or without.
fn simple(selector: &str) -> Option<Origin> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let is_tag = |name: &str| name.is_empty() || is_name(name);
    if is_name(selector) {
        return Some(Origin::Tag);
    }
    let (sign, origin) = if selector.contains('#') { ('#', Origin::Id) } else { ('.', Origin::Class) };
    let (tag, name) = selector.split_once(sign)?;
    (is_tag(tag) && is_name(name)).then_some(origin)
}

fn is_of_pseudo_element(selector: &str) -> bool {
    [":before", ":after", "::"].iter().any(|mark| selector.contains(mark))
}

/// The classes and the id that the element of a selector has, else its tag.
fn last_keys(selector: &str) -> Vec<String> {
    let plain = selector.split(['(', '[']).next().unwrap_or_default();
    // What stands in brackets may be followed by other elements, which have to be looked for behind it.
    let behind = selector.rsplit([')', ']']).next().unwrap_or_default();
    let part =
        if plain.len() == selector.len() || behind.contains([' ', '>', '+', '~']) { behind } else { plain };
    let last = part.trim().rsplit([' ', '>', '+', '~']).next().unwrap_or_default();
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
