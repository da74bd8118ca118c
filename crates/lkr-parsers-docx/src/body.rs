//! One walk through the XML of a text, which finds its items.

use lkr_parsers::{MAX_TEXT_BYTES, Result};
use quick_xml::events::BytesStart;

use crate::{
    error,
    frame::{Around, Frame, Grid, Paragraph},
    item::Item,
    notes::Notes,
    numbering::Lists,
    scenery::Scenery,
    shape::{Ground, Shape},
    styles::{Styles, level_of},
    xml::{Kind, Piece, attribute},
};

/// Finds the items of a text while its XML is read.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    styles: &'a Styles,
    lists: &'a mut Lists,
    notes: &'a mut Notes,
    frames: Vec<Frame>,
    done: Vec<Item>,
    /// How deep inside an element that is not read.
    skipped: usize,
    /// For each choice between representations, whether one was taken.
    alternates: Vec<bool>,
    bytes: usize,
    has_embedded: bool,
    /// Whether the pages have another colour than white.
    has_background: bool,
    /// The shapes that are open.
    shapes: Vec<Shape>,
    /// How many frames were open where each text box that is open began.
    boxes: Vec<usize>,
    scenery: Scenery,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(styles: &'a Styles, lists: &'a mut Lists, notes: &'a mut Notes) -> Self {
        Self {
            styles,
            lists,
            notes,
            frames: Vec::new(),
            done: Vec::new(),
            skipped: 0,
            alternates: Vec::new(),
            bytes: 0,
            has_embedded: false,
            has_background: false,
            shapes: Vec::new(),
            boxes: Vec::new(),
            scenery: Scenery::default(),
        }
    }

    /// The same walk, where it is known what may lie behind text boxes.
    pub(crate) fn with(self, scenery: Scenery) -> Self {
        Self { scenery, ..self }
    }

    /// What may lie behind text boxes.
    pub(crate) const fn scenery(&self) -> Scenery {
        self.scenery
    }

    /// The items that are complete.
    pub(crate) fn take(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.done)
    }

    /// Whether documents of other kinds are embedded, which are not read.
    pub(crate) const fn has_embedded(&self) -> bool {
        self.has_embedded
    }

    /// Completes what is open.
    pub(crate) fn close(&mut self) {
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Paragraph(paragraph) => self.complete(*paragraph),
                Frame::Table(grid) => self.deliver_all(grid.table.close()),
            }
        }
    }

    pub(crate) fn take_in(&mut self, piece: &Piece<'_>) -> Result<()> {
        match piece {
            Piece::Open(..) if self.skipped > 0 => self.skipped += 1,
            Piece::Close(_) if self.skipped > 0 => self.skipped -= 1,
            Piece::Text(..) if self.skipped > 0 => {}
            Piece::Open(kind, tag) => return self.open(*kind, tag),
            Piece::Close(kind) => self.shut(*kind),
            Piece::Text(text) => return self.write(text),
        }
        Ok(())
    }

    fn open(&mut self, kind: Kind, tag: &BytesStart<'_>) -> Result<()> {
        match kind {
            Kind::Skipped | Kind::Deletion => {
                self.describe(kind, tag);
                self.skipped = 1;
            }
            Kind::Alternate => self.alternates.push(false),
            Kind::Choice | Kind::Fallback => self.choose(),
            Kind::Embedded => self.has_embedded = true,
            Kind::Background => self.has_background |= self.styles.paper.is_ground(kind, tag),
            Kind::Picture => self.scenery.is_there = true,
            Kind::Shape | Kind::OldShape => self.shapes.push(Shape::new(self.frames.len(), kind, tag)),
            Kind::TextBox => self.boxes.push(self.frames.len()),
            Kind::Paragraph => {
                self.frames.push(Frame::Paragraph(Box::new(Paragraph::new(self.around()))));
            }
            Kind::Table => self.frames.push(Frame::Table(Box::new(Grid::new(self.around())))),
            Kind::Tab => return self.write("\t"),
            Kind::Break => return self.write("\n"),
            Kind::Hyphen => return self.write("\u{2011}"),
            Kind::Symbol => return self.symbol(tag),
            Kind::FootnoteReference | Kind::EndnoteReference => return self.refer(kind, tag),
            kind => self.describe(kind, tag),
        }
        Ok(())
    }

    /// Takes the first representation, and no other one.
    fn choose(&mut self) {
        match self.alternates.last_mut() {
            Some(taken) if *taken => self.skipped = 1,
            Some(taken) => *taken = true,
            None => {}
        }
    }

    /// Properties of what is open.
    fn describe(&mut self, kind: Kind, tag: &BytesStart<'_>) {
        if let Some(shape) = self.shapes.last_mut().filter(|shape| shape.depth == self.frames.len()) {
            shape.describe(kind, tag);
        }
        match self.frames.last_mut() {
            Some(Frame::Paragraph(paragraph)) => paragraph.describe(kind, tag, self.styles),
            Some(Frame::Table(grid)) => grid.describe(kind, tag, self.styles),
            None => {}
        }
    }

    /// What the surroundings do to words that come now.
    fn around(&self) -> Around {
        let page = Around { is_backed: self.has_background, ..Around::default() };
        let around = self.frames.last().map_or(page, Frame::around);
        match self.frames.last() {
            // A paragraph in another one that is in no text box stands where that one does.
            Some(Frame::Paragraph(_)) if self.boxes.last() == Some(&self.frames.len()) => self.in_box(around),
            _ => around,
        }
    }

    /// What a text box that hangs on a paragraph does to words, beside what the paragraph does.
    fn in_box(&self, around: Around) -> Around {
        let shape = self.shapes.last().filter(|shape| shape.depth == self.frames.len());
        match shape.map(Shape::ground) {
            Some(Ground::White) => Around { is_backed: false, ..around },
            Some(Ground::Clear) => {
                Around { is_backed: around.is_backed || self.scenery.keeps, is_clear: true, ..around }
            }
            // What is unknown may be any colour.
            Some(Ground::Colored) | None => Around { is_backed: true, ..around },
        }
    }

    fn is_unseen(&self) -> bool {
        match self.frames.last() {
            Some(Frame::Paragraph(paragraph)) => paragraph.is_unseen(),
            _ => self.around().is_hidden,
        }
    }

    fn shut(&mut self, kind: Kind) {
        if let Some(shape) = self.shapes.last_mut() {
            shape.shut(kind);
        }
        match (kind, self.frames.last_mut()) {
            (Kind::Alternate, _) => drop(self.alternates.pop()),
            (Kind::TextBox, _) => drop(self.boxes.pop()),
            (Kind::Shape | Kind::OldShape, _) => {
                let shape = self.shapes.pop();
                self.scenery.is_there |= shape.is_some_and(|shape| shape.ground() == Ground::Colored);
            }
            (Kind::Paragraph, Some(Frame::Paragraph(_))) | (Kind::Table, Some(Frame::Table(_))) => {
                match self.frames.pop() {
                    Some(Frame::Paragraph(paragraph)) => self.complete(*paragraph),
                    Some(Frame::Table(grid)) => self.deliver_all(grid.table.close()),
                    None => {}
                }
            }
            (kind, Some(Frame::Paragraph(paragraph))) => paragraph.shut(kind),
            (kind, Some(Frame::Table(grid))) => grid.shut(kind),
            _ => {}
        }
    }

    fn paragraph(&mut self) -> Option<&mut Paragraph> {
        match self.frames.last_mut() {
            Some(Frame::Paragraph(paragraph)) => Some(paragraph),
            _ => None,
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        if self.is_unseen() {
            self.scenery.is_needed |= self.paragraph().is_some_and(|paragraph| paragraph.is_white_in_clear());
            return Ok(());
        }
        self.bytes += text.len();
        if self.bytes > MAX_TEXT_BYTES {
            return Err(error::limit("it has more than 64 MiB of text"));
        }
        let readable = text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n'));
        match self.paragraph() {
            Some(paragraph) => paragraph.text.extend(paragraph.mark.take().into_iter().chain(readable)),
            None => {
                let text = readable.collect();
                self.deliver(Item::Paragraph(text));
            }
        }
        Ok(())
    }

    /// A character of a font: those of symbol fonts lie where no text is, and cannot be read.
    fn symbol(&mut self, tag: &BytesStart<'_>) -> Result<()> {
        let code = attribute(tag, "char").and_then(|code| u32::from_str_radix(&code, 16).ok());
        match code.and_then(char::from_u32).filter(|c| !('\u{e000}'..='\u{f8ff}').contains(c)) {
            Some(c) => self.write(c.encode_utf8(&mut [0; 4])),
            None => Ok(()),
        }
    }

    fn refer(&mut self, kind: Kind, tag: &BytesStart<'_>) -> Result<()> {
        // A note that is referred to where nobody sees it is not shown either.
        if self.is_unseen() {
            return Ok(());
        }
        let kind = if kind == Kind::FootnoteReference { Kind::Footnote } else { Kind::Endnote };
        match attribute(tag, "id").and_then(|id| self.notes.refer(kind, id)) {
            Some(number) => self.write(&format!("[{number}]")),
            None => Ok(()),
        }
    }

    fn complete(&mut self, paragraph: Paragraph) {
        let styles = self.styles;
        let style = paragraph.style.as_deref().or_else(|| styles.default_id());
        let level = match paragraph.outline {
            Some(outline) => level_of(outline),
            None => styles.heading(style),
        };
        let text = paragraph.text;
        let item = match level {
            Some(level) => Item::Heading { level, text },
            None if text.trim().is_empty() => Item::Paragraph(text),
            None => {
                let of_style = styles.list(style);
                let list = paragraph.list.as_deref().or(of_style.map(|(list, _)| list));
                let level = paragraph.list_level.or(of_style.map(|(_, level)| level)).unwrap_or_default();
                match list.filter(|list| *list != "0") {
                    Some(list) => Item::Listed { level, mark: self.lists.mark(list, level), text },
                    None => Item::Paragraph(text),
                }
            }
        };
        self.deliver(item);
        self.deliver_all(paragraph.boxes);
    }

    fn deliver_all(&mut self, items: Vec<Item>) {
        for item in items {
            self.deliver(item);
        }
    }

    /// Gives an item to what is open around it.
    fn deliver(&mut self, item: Item) {
        match self.frames.last_mut() {
            Some(Frame::Paragraph(paragraph)) => paragraph.boxes.push(item),
            Some(Frame::Table(grid)) => grid.table.push(item),
            None => self.done.push(item),
        }
    }
}
