//! The styles of paragraphs and runs.

use std::{collections::HashMap, iter};

use lkr_parsers::Result;
use quick_xml::events::BytesStart;

use crate::{
    color::ThemeColors,
    xml::{ElementKind, Xml, XmlEvent, attribute, is_on},
};

/// Most styles that a style may be based on.
const MAX_BASES: usize = 64;

/// Most styles that are read.
const MAX_STYLES: usize = 20_000;

/// The outline level of body text.
const BODY_TEXT: u8 = 9;

/// The styles of a document by their ids.
#[derive(Debug, Default)]
pub(crate) struct Styles {
    pub(crate) theme_colors: ThemeColors,
    styles: HashMap<String, Style>,
    /// The id of the style of paragraphs without a style.
    default: Option<String>,
}

#[derive(Debug, Default)]
struct Style {
    name: String,
    based_on: Option<String>,
    outline: Option<u8>,
    list: Option<String>,
    list_level: Option<u8>,
    hidden: Option<bool>,
    white: Option<bool>,
    /// Whether some of its text has a background colour.
    has_background: bool,
}

impl Styles {
    pub(crate) fn read(xml: &mut Xml<'_>, theme_colors: ThemeColors) -> Result<Self> {
        let mut found = Self { theme_colors, ..Self::default() };
        let mut open: Option<(String, Style)> = None;
        while let Some(event) = xml.next()? {
            match event {
                XmlEvent::Start(ElementKind::Style, tag) => {
                    let id = attribute(tag, "styleId").unwrap_or_default();
                    let is_default = matches!(attribute(tag, "default").as_deref(), Some("1" | "true"));
                    if is_default && attribute(tag, "type").as_deref() == Some("paragraph") {
                        found.default = Some(id.clone());
                    }
                    open = Some((id, Style::default()));
                }
                XmlEvent::Start(kind, tag) => {
                    if let Some((_, style)) = &mut open {
                        style.apply(kind, tag, theme_colors);
                    }
                }
                XmlEvent::End(ElementKind::Style) if found.styles.len() < MAX_STYLES => {
                    found.styles.extend(open.take());
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The heading level of a style, from 1; `None` if it is not a heading style.
    ///
    /// Word uses the names `heading 1` to `heading 9` in every language. `Title` is level 1.
    pub(crate) fn heading(&self, id: Option<&str>) -> Option<u8> {
        self.chain(id).find_map(Style::heading_level).flatten()
    }

    /// The list and its level that a style gives paragraphs.
    pub(crate) fn list(&self, id: Option<&str>) -> Option<(&str, u8)> {
        let list = self.chain(id).find_map(|style| style.list.as_deref())?;
        let level = self.chain(id).find_map(|style| style.list_level).unwrap_or_default();
        Some((list, level))
    }

    /// Whether a style hides text.
    pub(crate) fn hides(&self, id: Option<&str>) -> bool {
        self.chain(id).find_map(|style| style.hidden).unwrap_or_default()
    }

    /// Whether text in a style is white; `None` if the style sets no colour.
    pub(crate) fn is_white(&self, id: Option<&str>) -> Option<bool> {
        self.chain(id).find_map(|style| style.white)
    }

    /// Whether a style sets a background of text or of some table cells.
    pub(crate) fn has_background(&self, id: Option<&str>) -> bool {
        self.chain(id).any(|style| style.has_background)
    }

    /// The id of the style of paragraphs without a style.
    pub(crate) fn default_id(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// A style and the styles that it is based on.
    fn chain<'a>(&'a self, id: Option<&str>) -> impl Iterator<Item = &'a Style> {
        let first = id.and_then(|id| self.styles.get(id));
        iter::successors(first, |style| self.styles.get(style.based_on.as_deref()?)).take(MAX_BASES)
    }
}

impl Style {
    fn apply(&mut self, kind: ElementKind, tag: &BytesStart<'_>, theme_colors: ThemeColors) {
        let value = || attribute(tag, "val");
        match kind {
            ElementKind::StyleName => self.name = value().unwrap_or_default().to_lowercase(),
            ElementKind::BasedOn => self.based_on = value(),
            ElementKind::OutlineLevel => self.outline = value().and_then(|value| value.parse().ok()),
            ElementKind::NumberingId => self.list = value(),
            ElementKind::NumberingLevel => self.list_level = value().and_then(|value| value.parse().ok()),
            ElementKind::Vanish => self.hidden = Some(is_on(tag)),
            ElementKind::Color => self.white = Some(theme_colors.is_white_text(tag)),
            ElementKind::Shading | ElementKind::Highlight => {
                self.has_background |= theme_colors.is_background(kind, tag);
            }
            _ => {}
        }
    }

    /// The heading level that this style itself sets: `None` if it sets none, `Some(None)` for body text.
    fn heading_level(&self) -> Option<Option<u8>> {
        if self.name == "title" {
            return Some(Some(1));
        }
        let named = self.name.strip_prefix("heading ").and_then(|level| level.parse::<u8>().ok());
        if let Some(level) = named.filter(|level| (1..=9).contains(level)) {
            return Some(Some(level));
        }
        self.outline.map(level_of)
    }
}

/// The heading level of an outline level; `None` for body text.
pub(crate) fn level_of(outline: u8) -> Option<u8> {
    (outline < BODY_TEXT).then_some(outline + 1)
}
