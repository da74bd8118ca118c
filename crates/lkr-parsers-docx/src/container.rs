//! The open containers while a text is parsed, and the visibility of their text.

use quick_xml::events::BytesStart;

use crate::{
    body_item::{BodyItem, Table},
    formula::Formula,
    styles::Styles,
    symbol_font,
    xml::{ElementKind, attribute, is_on},
};

/// An open paragraph or table.
#[derive(Debug)]
pub(crate) enum Container {
    Paragraph(Box<Paragraph>),
    Table(Box<TableBuilder>),
}

/// The visibility that text inherits from its containers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InheritedVisibility {
    /// Whether it is inside a hidden run, for example in a text box that is anchored in one.
    pub(crate) is_hidden: bool,
    /// Whether white text may be visible on its background.
    pub(crate) has_background: bool,
    /// Whether it is in a transparent text box.
    pub(crate) is_transparent: bool,
}

impl Container {
    /// The visibility that text in this container inherits.
    pub(crate) fn inherited(&self) -> InheritedVisibility {
        match self {
            Self::Paragraph(paragraph) => {
                let has_background = paragraph.inherited.has_background || paragraph.has_background;
                InheritedVisibility {
                    is_hidden: paragraph.is_hidden(),
                    has_background,
                    ..InheritedVisibility::default()
                }
            }
            Self::Table(grid) => {
                let has_background =
                    grid.inherited.has_background || grid.has_background || grid.cell_has_background;
                let is_hidden = grid.inherited.is_hidden || grid.is_row_deleted || grid.is_cell_deleted;
                InheritedVisibility { is_hidden, has_background, ..grid.inherited }
            }
        }
    }
}

/// A table while it is parsed, with its backgrounds.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    pub(crate) rows: Table,
    inherited: InheritedVisibility,
    has_background: bool,
    in_cell: bool,
    cell_has_background: bool,
    in_row_properties: bool,
    is_row_deleted: bool,
    is_cell_deleted: bool,
}

impl TableBuilder {
    pub(crate) fn new(inherited: InheritedVisibility) -> Self {
        Self { inherited, ..Self::default() }
    }

    fn open_cell(&mut self) {
        self.rows.open_cell();
        (self.in_cell, self.cell_has_background, self.is_cell_deleted) = (true, false, false);
    }

    fn close_cell(&mut self) {
        if self.is_cell_deleted {
            self.rows.drop_cell();
        }
        (self.in_cell, self.cell_has_background, self.is_cell_deleted) = (false, false, false);
    }

    /// Closes a row, or removes it if its deletion is tracked.
    fn close_row(&mut self) {
        if self.is_row_deleted {
            self.rows.drop_row();
        } else {
            self.rows.close_row();
        }
        self.is_row_deleted = false;
    }

    pub(crate) fn end(&mut self, kind: ElementKind) {
        match kind {
            ElementKind::Row => self.close_row(),
            ElementKind::RowProperties => self.in_row_properties = false,
            ElementKind::Cell => self.close_cell(),
            _ => {}
        }
    }

    /// Applies a property of the table or of its open cell.
    pub(crate) fn apply(&mut self, kind: ElementKind, tag: &BytesStart<'_>, styles: &Styles) {
        match kind {
            ElementKind::Row => self.is_row_deleted = false,
            ElementKind::RowProperties => self.in_row_properties = true,
            ElementKind::Deletion => self.is_row_deleted |= self.in_row_properties,
            ElementKind::Cell => self.open_cell(),
            ElementKind::CellDeletion => self.is_cell_deleted |= self.in_cell,
            ElementKind::TableStyle => {
                self.has_background |= styles.has_background(attribute(tag, "val").as_deref());
            }
            ElementKind::Shading if self.in_cell => {
                self.cell_has_background |= styles.theme_colors.is_background(kind, tag);
            }
            ElementKind::Shading => self.has_background |= styles.theme_colors.is_background(kind, tag),
            _ => {}
        }
    }
}

/// A paragraph while it is parsed.
#[derive(Debug, Default)]
pub(crate) struct Paragraph {
    pub(crate) text: String,
    pub(crate) style: Option<String>,
    pub(crate) outline: Option<u8>,
    pub(crate) list: Option<String>,
    pub(crate) list_level: Option<u8>,
    in_properties: bool,
    /// Whether the run properties are those of the paragraph mark.
    in_mark_properties: bool,
    /// Whether its paragraph mark is hidden, or its deletion tracked. Such a paragraph without text is not shown.
    pub(crate) is_mark_hidden: bool,
    pub(crate) formula: Formula,
    /// Where the open pronunciation of some text begins.
    pronunciation_start: Option<usize>,
    /// The pronunciation of the text that follows.
    pronunciation: String,
    /// The items in text boxes that are anchored in the paragraph. They follow it.
    pub(crate) boxes: Vec<BodyItem>,
    inherited: InheritedVisibility,
    has_background: bool,
    /// Where the instructions of the open fields begin; `None` for a field whose result has begun.
    fields: Vec<Option<usize>>,
    /// The open runs. There are several only in ruby text.
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    is_hidden: bool,
    is_white: bool,
    has_background: bool,
    /// Whether its font size is below one point.
    is_tiny: bool,
    /// Whether the run itself sets a colour, which overrides that of a style.
    has_color: bool,
    /// Whether its letters are those of the font Symbol.
    is_symbol: bool,
}

impl Paragraph {
    pub(crate) fn new(inherited: InheritedVisibility) -> Self {
        Self { inherited, ..Self::default() }
    }

    /// Applies a property of the paragraph or of its open run.
    pub(crate) fn apply(&mut self, kind: ElementKind, tag: &BytesStart<'_>, styles: &Styles) {
        let value = || attribute(tag, "val");
        match kind {
            ElementKind::ParagraphProperties => self.in_properties = true,
            ElementKind::RunProperties => self.in_mark_properties = self.in_properties,
            ElementKind::ParagraphStyle => self.style = value(),
            ElementKind::OutlineLevel => self.outline = value().and_then(|value| value.parse().ok()),
            ElementKind::NumberingId => self.list = value(),
            ElementKind::NumberingLevel => self.list_level = value().and_then(|value| value.parse().ok()),
            ElementKind::Shading if self.in_properties && !self.in_mark_properties => {
                self.has_background |= styles.theme_colors.is_background(kind, tag);
            }
            ElementKind::Vanish if self.in_mark_properties => self.is_mark_hidden |= is_on(tag),
            ElementKind::Deletion if self.in_mark_properties => self.is_mark_hidden = true,
            ElementKind::Skipped if self.in_mark_properties => {
                self.is_mark_hidden |= tag.local_name().as_ref() == "moveFrom";
            }
            ElementKind::Run => self.open_run(styles),
            ElementKind::Pronunciation => self.pronunciation_start = Some(self.text.len()),
            ElementKind::FieldMark => self.mark_field(&attribute(tag, "fldCharType").unwrap_or_default()),
            _ if !self.in_properties => {
                self.formula.start(kind, tag, &self.text);
                self.apply_to_run(kind, tag, styles);
            }
            _ => {}
        }
    }

    pub(crate) fn end(&mut self, kind: ElementKind) {
        match kind {
            ElementKind::ParagraphProperties => {
                (self.in_properties, self.in_mark_properties) = (false, false);
            }
            ElementKind::RunProperties => self.in_mark_properties = false,
            ElementKind::Run => drop(self.runs.pop()),
            ElementKind::Pronunciation => {
                let start =
                    self.pronunciation_start.take().filter(|start| self.text.is_char_boundary(*start));
                self.pronunciation = start.map(|start| self.text.split_off(start)).unwrap_or_default();
                let length = self.text.len();
                self.fields.iter_mut().flatten().for_each(|begin| *begin = length.min(*begin));
            }
            ElementKind::Ruby => self.push_pronunciation(),
            kind => {
                if let Some(bracket) = self.formula.end(kind, &mut self.text) {
                    let moved = self.fields.iter_mut().flatten().filter(|begin| **begin > bracket);
                    moved.for_each(|begin| *begin += 1);
                }
            }
        }
    }

    /// Adds the pronunciation after the text that it belongs to, so that the text is not apart from what precedes it.
    fn push_pronunciation(&mut self) {
        let pronunciation = std::mem::take(&mut self.pronunciation);
        if !pronunciation.trim().is_empty() {
            self.text.push_str(&format!("({})", pronunciation.trim()));
        }
    }

    /// The name of the open run's font, if that is the one of Greek letters and signs; empty otherwise.
    pub(crate) fn symbol_font(&self) -> &'static str {
        let is_symbol = self.runs.last().is_some_and(|run| run.is_symbol);
        if is_symbol { symbol_font::SYMBOL } else { "" }
    }

    /// Whether the next text is visible only if something is behind its transparent text box.
    pub(crate) fn is_white_in_transparent_box(&self) -> bool {
        self.inherited.is_transparent && !self.in_properties && !self.is_hidden() && self.is_invisible()
    }

    /// Whether the next text is invisible.
    pub(crate) fn is_invisible(&self) -> bool {
        let has_background = self.inherited.has_background
            || self.has_background
            || self.runs.iter().any(|run| run.has_background);
        let is_white = self.runs.last().is_some_and(|run| run.is_white);
        self.in_properties || self.is_hidden() || (is_white && !has_background)
    }

    fn is_hidden(&self) -> bool {
        self.inherited.is_hidden || self.runs.iter().any(|run| run.is_hidden || run.is_tiny)
    }

    /// Removes the instruction of a field, between its start and its result. The instruction of a field that continues in
    /// another paragraph is kept.
    fn mark_field(&mut self, mark: &str) {
        match mark {
            "begin" => self.fields.push(Some(self.text.len())),
            "separate" => {
                if let Some(begin) = self.fields.last_mut().and_then(Option::take) {
                    self.text.truncate(self.text.floor_char_boundary(begin));
                }
            }
            "end" => {
                if let Some(begin) = self.fields.pop().flatten() {
                    self.text.truncate(self.text.floor_char_boundary(begin));
                }
            }
            _ => {}
        }
    }

    fn open_run(&mut self, styles: &Styles) {
        // The default style is ignored: it would hide the whole document.
        let style = self.style.as_deref();
        self.runs.push(Run {
            is_hidden: styles.hides(style),
            is_white: styles.is_white(style).unwrap_or_default(),
            has_background: styles.has_background(style),
            is_tiny: false,
            has_color: false,
            is_symbol: false,
        });
    }

    fn apply_to_run(&mut self, kind: ElementKind, tag: &BytesStart<'_>, styles: &Styles) {
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        match kind {
            ElementKind::RunStyle => {
                let style = attribute(tag, "val");
                run.is_hidden |= styles.hides(style.as_deref());
                run.has_background |= styles.has_background(style.as_deref());
                if let Some(is_white) = styles.is_white(style.as_deref()).filter(|_| !run.has_color) {
                    run.is_white = is_white;
                }
            }
            ElementKind::Vanish => run.is_hidden = is_on(tag),
            ElementKind::Size => run.is_tiny = is_tiny(tag),
            ElementKind::Fonts => {
                run.is_symbol = attribute(tag, "ascii").as_deref() == Some(symbol_font::SYMBOL);
            }
            ElementKind::Color => {
                (run.is_white, run.has_color) = (styles.theme_colors.is_white_text(tag), true);
            }
            ElementKind::Shading | ElementKind::Highlight => {
                run.has_background |= styles.theme_colors.is_background(kind, tag);
            }
            _ => {}
        }
    }
}

/// Whether a font size, in half points, is too small to read.
fn is_tiny(tag: &BytesStart<'_>) -> bool {
    attribute(tag, "val").and_then(|size| size.parse::<f32>().ok()).is_some_and(|size| size < 2.0)
}
