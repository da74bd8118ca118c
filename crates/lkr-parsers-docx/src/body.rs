//! Reads the items of a document body from its XML events.

use lkr_parsers::{MAX_TEXT_BYTES, Result};
use quick_xml::events::BytesStart;

use crate::{
    backdrop::Backdrop,
    body_item::BodyItem,
    container::{Container, InheritedVisibility, Paragraph, TableBuilder},
    error,
    notes::Notes,
    numbering::Lists,
    shape::{Shape, ShapeFill},
    styles::{Styles, level_of},
    symbol_font,
    xml::{ElementKind, XmlEvent, attribute},
};

/// Collects the items of a text from XML events.
#[derive(Debug)]
pub(crate) struct BodyReader<'a> {
    styles: &'a Styles,
    lists: &'a mut Lists,
    notes: &'a mut Notes,
    containers: Vec<Container>,
    items: Vec<BodyItem>,
    /// How many levels of a skipped element are open.
    skipped: usize,
    /// For each open choice between alternatives, whether one was chosen.
    alternatives: Vec<bool>,
    bytes: usize,
    has_embedded: bool,
    /// Whether the page colour is not white.
    has_page_background: bool,
    /// The open shapes.
    shapes: Vec<Shape>,
    /// For each open text box, how many containers were open at its start.
    boxes: Vec<usize>,
    backdrop: Backdrop,
}

impl<'a> BodyReader<'a> {
    pub(crate) fn new(styles: &'a Styles, lists: &'a mut Lists, notes: &'a mut Notes) -> Self {
        Self {
            styles,
            lists,
            notes,
            containers: Vec::new(),
            items: Vec::new(),
            skipped: 0,
            alternatives: Vec::new(),
            bytes: 0,
            has_embedded: false,
            has_page_background: false,
            shapes: Vec::new(),
            boxes: Vec::new(),
            backdrop: Backdrop::default(),
        }
    }

    /// Sets what may be behind text boxes.
    pub(crate) fn with_backdrop(self, backdrop: Backdrop) -> Self {
        Self { backdrop, ..self }
    }

    /// What may be behind text boxes.
    pub(crate) const fn backdrop(&self) -> Backdrop {
        self.backdrop
    }

    /// Removes and returns the complete items.
    pub(crate) fn take_items(&mut self) -> Vec<BodyItem> {
        std::mem::take(&mut self.items)
    }

    /// Whether the document embeds documents of other formats, which are not read.
    pub(crate) const fn has_embedded(&self) -> bool {
        self.has_embedded
    }

    /// Closes all open containers.
    pub(crate) fn close(&mut self) {
        while let Some(container) = self.containers.pop() {
            match container {
                Container::Paragraph(paragraph) => self.finish_paragraph(*paragraph),
                Container::Table(table) => self.push_items(table.rows.close()),
            }
        }
    }

    pub(crate) fn handle(&mut self, event: &XmlEvent<'_>) -> Result<()> {
        match event {
            XmlEvent::Start(..) if self.skipped > 0 => self.skipped += 1,
            XmlEvent::End(_) if self.skipped > 0 => self.skipped -= 1,
            XmlEvent::Text(..) if self.skipped > 0 => {}
            XmlEvent::Start(kind, tag) => return self.start(*kind, tag),
            XmlEvent::End(kind) => self.end(*kind),
            XmlEvent::Text(text) => return self.push_text(text),
        }
        Ok(())
    }

    fn start(&mut self, kind: ElementKind, tag: &BytesStart<'_>) -> Result<()> {
        match kind {
            ElementKind::Skipped | ElementKind::Deletion => {
                self.apply(kind, tag);
                self.skipped = 1;
            }
            ElementKind::Alternate => self.alternatives.push(false),
            ElementKind::Choice | ElementKind::Fallback => self.choose(),
            ElementKind::Embedded => self.has_embedded = true,
            ElementKind::Background => {
                self.has_page_background |= self.styles.theme_colors.is_background(kind, tag);
            }
            ElementKind::Picture => self.backdrop.add_picture(),
            ElementKind::Shape | ElementKind::VmlShape => {
                self.shapes.push(Shape::new(self.containers.len(), kind, tag));
            }
            ElementKind::TextBox => self.boxes.push(self.containers.len()),
            ElementKind::Paragraph => {
                self.containers.push(Container::Paragraph(Box::new(Paragraph::new(self.inherited()))));
            }
            ElementKind::Table => {
                self.containers.push(Container::Table(Box::new(TableBuilder::new(self.inherited()))));
            }
            ElementKind::Tab => return self.push_text("\t"),
            ElementKind::Break => return self.push_text("\n"),
            ElementKind::Hyphen => return self.push_text("\u{2011}"),
            ElementKind::Symbol => return self.push_symbol(tag),
            ElementKind::FootnoteReference | ElementKind::EndnoteReference => {
                return self.reference_note(kind, tag);
            }
            kind => self.apply(kind, tag),
        }
        Ok(())
    }

    /// Reads the first alternative and skips the others.
    fn choose(&mut self) {
        match self.alternatives.last_mut() {
            Some(is_chosen) if *is_chosen => self.skipped = 1,
            Some(is_chosen) => *is_chosen = true,
            None => {}
        }
    }

    /// Applies a property to the open shape and container.
    fn apply(&mut self, kind: ElementKind, tag: &BytesStart<'_>) {
        if let Some(shape) = self.shapes.last_mut().filter(|shape| shape.depth == self.containers.len()) {
            shape.apply(kind, tag);
        }
        match self.containers.last_mut() {
            Some(Container::Paragraph(paragraph)) => paragraph.apply(kind, tag, self.styles),
            Some(Container::Table(table)) => table.apply(kind, tag, self.styles),
            None => {}
        }
    }

    /// The visibility that the next text inherits.
    fn inherited(&self) -> InheritedVisibility {
        let page = InheritedVisibility {
            has_background: self.has_page_background,
            ..InheritedVisibility::default()
        };
        let inherited = self.containers.last().map_or(page, Container::inherited);
        match self.containers.last() {
            // A paragraph nested in another one outside of a text box inherits from it.
            Some(Container::Paragraph(_)) if self.boxes.last() == Some(&self.containers.len()) => {
                self.in_text_box(inherited)
            }
            _ => inherited,
        }
    }

    /// The visibility inside a text box that is anchored in a paragraph.
    fn in_text_box(&self, inherited: InheritedVisibility) -> InheritedVisibility {
        let shape = self.shapes.last().filter(|shape| shape.depth == self.containers.len());
        match shape.map(Shape::fill) {
            Some(ShapeFill::White) => InheritedVisibility { has_background: false, ..inherited },
            Some(ShapeFill::Transparent) => InheritedVisibility {
                has_background: inherited.has_background || self.backdrop.is_assumed,
                is_transparent: true,
                ..inherited
            },
            // An unknown fill may have any colour.
            Some(ShapeFill::Colored) | None => InheritedVisibility { has_background: true, ..inherited },
        }
    }

    fn is_invisible(&self) -> bool {
        match self.containers.last() {
            Some(Container::Paragraph(paragraph)) => paragraph.is_invisible(),
            _ => self.inherited().is_hidden,
        }
    }

    fn end(&mut self, kind: ElementKind) {
        if let Some(shape) = self.shapes.last_mut() {
            shape.end(kind);
        }
        match (kind, self.containers.last_mut()) {
            (ElementKind::Alternate, _) => drop(self.alternatives.pop()),
            (ElementKind::TextBox, _) => drop(self.boxes.pop()),
            (ElementKind::Shape | ElementKind::VmlShape, _) => {
                let shape = self.shapes.pop();
                self.backdrop.exists |= shape.is_some_and(|shape| shape.fill() == ShapeFill::Colored);
            }
            (ElementKind::Paragraph, Some(Container::Paragraph(_)))
            | (ElementKind::Table, Some(Container::Table(_))) => match self.containers.pop() {
                Some(Container::Paragraph(paragraph)) => self.finish_paragraph(*paragraph),
                Some(Container::Table(table)) => self.push_items(table.rows.close()),
                None => {}
            },
            (kind, Some(Container::Paragraph(paragraph))) => paragraph.end(kind),
            (kind, Some(Container::Table(table))) => table.end(kind),
            _ => {}
        }
    }

    fn paragraph(&mut self) -> Option<&mut Paragraph> {
        match self.containers.last_mut() {
            Some(Container::Paragraph(paragraph)) => Some(paragraph),
            _ => None,
        }
    }

    fn push_text(&mut self, text: &str) -> Result<()> {
        if self.is_invisible() {
            self.backdrop.is_needed |=
                self.paragraph().is_some_and(|paragraph| paragraph.is_white_in_transparent_box());
            return Ok(());
        }
        self.bytes += text.len();
        if self.bytes > MAX_TEXT_BYTES {
            return Err(error::too_much_text());
        }
        let readable = text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n'));
        match self.paragraph() {
            Some(paragraph) => {
                let (signs, font) = (paragraph.formula.take_signs(), paragraph.symbol_font());
                paragraph.text.push_str(&signs);
                paragraph.text.extend(readable.map(|c| symbol_font::character(font, c)));
            }
            None => {
                let text = readable.collect();
                self.push_item(BodyItem::Paragraph(text));
            }
        }
        Ok(())
    }

    /// Adds a character of a font. Those of symbol fonts are in the private use area; the ones that are no letters or signs
    /// have no text.
    fn push_symbol(&mut self, tag: &BytesStart<'_>) -> Result<()> {
        let code = attribute(tag, "char").and_then(|code| u32::from_str_radix(&code, 16).ok());
        let font = attribute(tag, "font").unwrap_or_default();
        let symbol = code.and_then(char::from_u32).map(|c| symbol_font::character(&font, c));
        match symbol.filter(|c| !('\u{e000}'..='\u{f8ff}').contains(c)) {
            Some(c) => self.push_text(c.encode_utf8(&mut [0; 4])),
            None => Ok(()),
        }
    }

    fn reference_note(&mut self, kind: ElementKind, tag: &BytesStart<'_>) -> Result<()> {
        // A note that only invisible text refers to is not shown.
        if self.is_invisible() {
            return Ok(());
        }
        let kind =
            if kind == ElementKind::FootnoteReference { ElementKind::Footnote } else { ElementKind::Endnote };
        match attribute(tag, "id").and_then(|id| self.notes.reference_note(kind, id)) {
            Some(number) => self.push_text(&format!("[{number}]")),
            None => Ok(()),
        }
    }

    fn finish_paragraph(&mut self, paragraph: Paragraph) {
        let styles = self.styles;
        let style = paragraph.style.as_deref().or_else(|| styles.default_id());
        let level = match paragraph.outline {
            Some(outline) => level_of(outline),
            None => styles.heading(style),
        };
        let text = paragraph.text;
        let style_list = styles.list(style);
        let list = paragraph.list.as_deref().or(style_list.map(|(list, _)| list));
        let is_empty = text.trim().is_empty();
        let list = list.filter(|list| *list != "0" && !(is_empty && paragraph.is_mark_hidden));
        let list_level = paragraph.list_level.or(style_list.map(|(_, level)| level)).unwrap_or_default();
        let item = match (level, list) {
            // An item without text, of which only the number and perhaps a picture are shown.
            (_, Some(list)) if is_empty => {
                self.lists.count(list, list_level);
                BodyItem::Paragraph(text)
            }
            (Some(level), list) => {
                // It counts in its list, so that the items below it have their numbers.
                if let Some(list) = list {
                    self.lists.count(list, list_level);
                }
                BodyItem::Heading { level, text }
            }
            (None, Some(list)) => {
                BodyItem::ListItem { level: list_level, mark: self.lists.mark(list, list_level), text }
            }
            (None, None) => BodyItem::Paragraph(text),
        };
        self.push_item(item);
        self.push_items(paragraph.boxes);
    }

    fn push_items(&mut self, items: Vec<BodyItem>) {
        for item in items {
            self.push_item(item);
        }
    }

    /// Adds an item to the innermost container.
    fn push_item(&mut self, item: BodyItem) {
        match self.containers.last_mut() {
            Some(Container::Paragraph(paragraph)) => paragraph.boxes.push(item),
            Some(Container::Table(table)) => table.rows.push(item),
            None => self.items.push(item),
        }
    }
}
