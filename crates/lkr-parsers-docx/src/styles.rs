//! What styles say of paragraphs and runs.

use std::{collections::HashMap, iter};

use lkr_parsers::Result;
use quick_xml::events::BytesStart;

use crate::{
    color::Paper,
    xml::{Kind, Piece, Xml, attribute, is_on},
};

/// A style is based on no more others than this.
const MAX_BASES: usize = 64;

/// How many styles are read.
const MAX_STYLES: usize = 20_000;

/// The outline level that says "this is no heading".
const BODY_TEXT: u8 = 9;

/// The styles of a document by their ids.
#[derive(Debug, Default)]
pub(crate) struct Styles {
    /// What the theme's colours of the paper are.
    pub(crate) paper: Paper,
    styles: HashMap<String, Style>,
    /// The style of paragraphs that name none.
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
    /// Whether there is a colour behind some of its text.
    is_backed: bool,
}

impl Styles {
    pub(crate) fn read(xml: &mut Xml<'_>, paper: Paper) -> Result<Self> {
        let mut found = Self { paper, ..Self::default() };
        let mut open: Option<(String, Style)> = None;
        while let Some(piece) = xml.next()? {
            match piece {
                Piece::Open(Kind::Style, tag) => {
                    let id = attribute(tag, "styleId").unwrap_or_default();
                    let is_default = matches!(attribute(tag, "default").as_deref(), Some("1" | "true"));
                    if is_default && attribute(tag, "type").as_deref() == Some("paragraph") {
                        found.default = Some(id.clone());
                    }
                    open = Some((id, Style::default()));
                }
                Piece::Open(kind, tag) => {
                    if let Some((_, style)) = &mut open {
                        style.take(kind, tag, paper);
                    }
                }
                Piece::Close(Kind::Style) if found.styles.len() < MAX_STYLES => {
                    found.styles.extend(open.take());
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The level of the headings in a style, from 1; none where it is for other text.
    ///
    /// The names `heading 1` to `heading 9` are those of Word in every language; `Title` stands above all.
    pub(crate) fn heading(&self, id: Option<&str>) -> Option<u8> {
        self.chain(id).find_map(Style::says_of_headings).flatten()
    }

    /// The list and the level in it that a style puts paragraphs into.
    pub(crate) fn list(&self, id: Option<&str>) -> Option<(&str, u8)> {
        let list = self.chain(id).find_map(|style| style.list.as_deref())?;
        let level = self.chain(id).find_map(|style| style.list_level).unwrap_or_default();
        Some((list, level))
    }

    /// Whether a style hides text.
    pub(crate) fn hides(&self, id: Option<&str>) -> bool {
        self.chain(id).find_map(|style| style.hidden).unwrap_or_default()
    }

    /// Whether text in a style is white; none where the style does not say.
    pub(crate) fn is_white(&self, id: Option<&str>) -> Option<bool> {
        self.chain(id).find_map(|style| style.white)
    }

    /// Whether there is a colour behind text in a style, or behind some cells in a style of tables.
    pub(crate) fn is_backed(&self, id: Option<&str>) -> bool {
        self.chain(id).any(|style| style.is_backed)
    }

    /// The style of paragraphs that name none.
    pub(crate) fn default_id(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// A style and those that it is based on.
    fn chain<'a>(&'a self, id: Option<&str>) -> impl Iterator<Item = &'a Style> {
        let first = id.and_then(|id| self.styles.get(id));
        iter::successors(first, |style| self.styles.get(style.based_on.as_deref()?)).take(MAX_BASES)
    }
}

impl Style {
    fn take(&mut self, kind: Kind, tag: &BytesStart<'_>, paper: Paper) {
        let value = || attribute(tag, "val");
        match kind {
            Kind::StyleName => self.name = value().unwrap_or_default().to_lowercase(),
            Kind::BasedOn => self.based_on = value(),
            Kind::OutlineLevel => self.outline = value().and_then(|value| value.parse().ok()),
            Kind::NumberingId => self.list = value(),
            Kind::NumberingLevel => self.list_level = value().and_then(|value| value.parse().ok()),
            Kind::Vanish => self.hidden = Some(is_on(tag)),
            Kind::Color => self.white = Some(paper.is_white_text(tag)),
            Kind::Shading | Kind::Highlight => self.is_backed |= paper.is_ground(kind, tag),
            _ => {}
        }
    }

    /// What this style alone says: nothing, no heading, or the level of one.
    fn says_of_headings(&self) -> Option<Option<u8>> {
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

/// The level of headings with that outline level.
pub(crate) fn level_of(outline: u8) -> Option<u8> {
    (outline < BODY_TEXT).then_some(outline + 1)
}
