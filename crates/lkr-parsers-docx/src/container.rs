//! What is open while a text is read, and what of it can be seen.

use quick_xml::events::BytesStart;

use crate::{
    item::{Item, Table},
    styles::Styles,
    xml::{Kind, attribute, is_on},
};

/// What is open.
#[derive(Debug)]
pub(crate) enum Frame {
    Paragraph(Box<Paragraph>),
    Table(Box<Grid>),
}

/// What the surroundings of words do to them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Around {
    /// Whether a hidden run holds them, as it does where a text box hangs on it.
    pub(crate) is_hidden: bool,
    /// Whether white words may be read on what lies behind them.
    pub(crate) is_backed: bool,
    /// Whether they stand in a text box through which all that lies behind it is seen.
    pub(crate) is_clear: bool,
}

impl Frame {
    /// What this is to all that stands inside of it.
    pub(crate) fn around(&self) -> Around {
        match self {
            Self::Paragraph(paragraph) => {
                let is_backed = paragraph.around.is_backed || paragraph.is_backed;
                Around { is_hidden: paragraph.is_hidden(), is_backed, ..Around::default() }
            }
            Self::Table(grid) => {
                let is_backed = grid.around.is_backed || grid.is_backed || grid.has_backed_cell;
                let is_hidden = grid.around.is_hidden || grid.is_row_deleted || grid.is_cell_deleted;
                Around { is_hidden, is_backed, ..grid.around }
            }
        }
    }
}

/// A table with what lies behind it.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pub(crate) table: Table,
    around: Around,
    is_backed: bool,
    in_cell: bool,
    has_backed_cell: bool,
    in_row_properties: bool,
    is_row_deleted: bool,
    is_cell_deleted: bool,
}

impl Grid {
    pub(crate) fn new(around: Around) -> Self {
        Self { around, ..Self::default() }
    }

    fn open_cell(&mut self) {
        self.table.open_cell();
        (self.in_cell, self.has_backed_cell, self.is_cell_deleted) = (true, false, false);
    }

    fn close_cell(&mut self) {
        if self.is_cell_deleted {
            self.table.drop_cell();
        }
        (self.in_cell, self.has_backed_cell, self.is_cell_deleted) = (false, false, false);
    }

    /// What is left of a row once its deletion is accepted is nothing.
    fn close_row(&mut self) {
        if self.is_row_deleted {
            self.table.drop_row();
        } else {
            self.table.close_row();
        }
        self.is_row_deleted = false;
    }

    pub(crate) fn shut(&mut self, kind: Kind) {
        match kind {
            Kind::Row => self.close_row(),
            Kind::RowProperties => self.in_row_properties = false,
            Kind::Cell => self.close_cell(),
            _ => {}
        }
    }

    /// Takes in what is said of the table or of its open cell.
    pub(crate) fn describe(&mut self, kind: Kind, tag: &BytesStart<'_>, styles: &Styles) {
        match kind {
            Kind::Row => self.is_row_deleted = false,
            Kind::RowProperties => self.in_row_properties = true,
            Kind::Deletion => self.is_row_deleted |= self.in_row_properties,
            Kind::Cell => self.open_cell(),
            Kind::CellDeletion => self.is_cell_deleted |= self.in_cell,
            Kind::TableStyle => self.is_backed |= styles.is_backed(attribute(tag, "val").as_deref()),
            Kind::Shading if self.in_cell => self.has_backed_cell |= styles.paper.is_ground(kind, tag),
            Kind::Shading => self.is_backed |= styles.paper.is_ground(kind, tag),
            _ => {}
        }
    }
}

/// A paragraph while it is read.
#[derive(Debug, Default)]
pub(crate) struct Paragraph {
    pub(crate) text: String,
    pub(crate) style: Option<String>,
    pub(crate) outline: Option<u8>,
    pub(crate) list: Option<String>,
    pub(crate) list_level: Option<u8>,
    in_properties: bool,
    /// Whether the properties are those of the mark at the paragraph's end.
    of_mark: bool,
    /// What parts the next words of a formula from those before.
    pub(crate) mark: Option<char>,
    /// What stands in text boxes that hang on the paragraph: it is read after it.
    pub(crate) boxes: Vec<Item>,
    around: Around,
    is_backed: bool,
    /// Where the instructions of the open fields begin; none for a field whose result has begun.
    fields: Vec<Option<usize>>,
    /// The open runs: one, or more where words have others above them.
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    is_hidden: bool,
    is_white: bool,
    is_backed: bool,
    /// Whether its letters are smaller than a point.
    is_tiny: bool,
    /// Whether the run itself says which colour it has, rather than a style.
    has_color: bool,
}

impl Paragraph {
    pub(crate) fn new(around: Around) -> Self {
        Self { around, ..Self::default() }
    }

    /// Takes in what is said of the paragraph, or of its open run.
    pub(crate) fn describe(&mut self, kind: Kind, tag: &BytesStart<'_>, styles: &Styles) {
        let value = || attribute(tag, "val");
        match kind {
            Kind::ParagraphProperties => self.in_properties = true,
            Kind::RunProperties => self.of_mark = self.in_properties,
            Kind::ParagraphStyle => self.style = value(),
            Kind::OutlineLevel => self.outline = value().and_then(|value| value.parse().ok()),
            Kind::NumberingId => self.list = value(),
            Kind::NumberingLevel => self.list_level = value().and_then(|value| value.parse().ok()),
            Kind::Shading if self.in_properties && !self.of_mark => {
                self.is_backed |= styles.paper.is_ground(kind, tag);
            }
            Kind::Run => self.open_run(styles),
            Kind::FieldMark => self.mark_field(&attribute(tag, "fldCharType").unwrap_or_default()),
            Kind::Subscript => self.mark = Some('_'),
            Kind::Superscript => self.mark = Some('^'),
            Kind::Denominator => self.mark = Some('/'),
            _ if !self.in_properties => self.describe_run(kind, tag, styles),
            _ => {}
        }
    }

    pub(crate) fn shut(&mut self, kind: Kind) {
        match kind {
            Kind::ParagraphProperties => (self.in_properties, self.of_mark) = (false, false),
            Kind::RunProperties => self.of_mark = false,
            Kind::Run => drop(self.runs.pop()),
            Kind::Subscript | Kind::Superscript | Kind::Denominator => self.mark = None,
            _ => {}
        }
    }

    /// Whether words that come now would be seen if another thing lay behind their text box.
    pub(crate) fn is_white_in_clear(&self) -> bool {
        self.around.is_clear && !self.in_properties && !self.is_hidden() && self.is_unseen()
    }

    /// Whether words that come now are not seen.
    pub(crate) fn is_unseen(&self) -> bool {
        let is_backed = self.around.is_backed || self.is_backed || self.runs.iter().any(|run| run.is_backed);
        let is_white = self.runs.last().is_some_and(|run| run.is_white);
        self.in_properties || self.is_hidden() || (is_white && !is_backed)
    }

    fn is_hidden(&self) -> bool {
        self.around.is_hidden || self.runs.iter().any(|run| run.is_hidden || run.is_tiny)
    }

    /// Takes back what stands between the beginning of a field and its result: it is an instruction. That of a field
    /// which goes on in another paragraph stays.
    fn mark_field(&mut self, mark: &str) {
        match mark {
            "begin" => self.fields.push(Some(self.text.len())),
            "separate" => {
                if let Some(begin) = self.fields.last_mut().and_then(Option::take) {
                    self.text.truncate(begin);
                }
            }
            "end" => {
                if let Some(begin) = self.fields.pop().flatten() {
                    self.text.truncate(begin);
                }
            }
            _ => {}
        }
    }

    fn open_run(&mut self, styles: &Styles) {
        // The default style hides nothing: a document is not made to be hidden as a whole.
        let style = self.style.as_deref();
        self.runs.push(Run {
            is_hidden: styles.hides(style),
            is_white: styles.is_white(style).unwrap_or_default(),
            is_backed: styles.is_backed(style),
            is_tiny: false,
            has_color: false,
        });
    }

    fn describe_run(&mut self, kind: Kind, tag: &BytesStart<'_>, styles: &Styles) {
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        match kind {
            Kind::RunStyle => {
                let style = attribute(tag, "val");
                run.is_hidden |= styles.hides(style.as_deref());
                run.is_backed |= styles.is_backed(style.as_deref());
                if let Some(is_white) = styles.is_white(style.as_deref()).filter(|_| !run.has_color) {
                    run.is_white = is_white;
                }
            }
            Kind::Vanish => run.is_hidden = is_on(tag),
            Kind::Size => run.is_tiny = is_tiny(tag),
            Kind::Color => (run.is_white, run.has_color) = (styles.paper.is_white_text(tag), true),
            Kind::Shading | Kind::Highlight => run.is_backed |= styles.paper.is_ground(kind, tag),
            _ => {}
        }
    }
}

/// Whether letters of a size, which is in half points, are there for machines alone.
fn is_tiny(tag: &BytesStart<'_>) -> bool {
    attribute(tag, "val").and_then(|size| size.parse::<f32>().ok()).is_some_and(|size| size < 2.0)
}
