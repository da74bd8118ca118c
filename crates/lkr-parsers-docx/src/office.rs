use std::io::Cursor;

use lkr_domain::Parsed;
use lkr_parsers::{Format, Parser, Result, Source, check_format};
use office_oxide::{
    Document, DocumentFormat,
    ir::{Element, List, inline_to_text},
};

use crate::{
    blocks::Blocks,
    body_item::{BodyItem, Table},
    error,
};

/// Elements nested deeper than this are skipped.
const MAX_DEPTH: usize = 64;

/// Parses DOCX files with the crate `office_oxide`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfficeOxide;

impl Parser for OfficeOxide {
    fn name(&self) -> &'static str {
        "office_oxide"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        check_format(Format::Docx, source.bytes)?;
        // The crate needs an owned reader.
        let reader = Cursor::new(source.bytes.to_vec());
        let document = Document::from_reader(reader, DocumentFormat::Docx).map_err(error::office)?;
        let read = document.to_ir();
        let mut blocks = Blocks::default();
        for warning in &read.metadata.warnings {
            blocks.warn(warning.clone());
        }
        for element in read.sections.iter().flat_map(|section| &section.elements) {
            for item in items(element, 0) {
                blocks.push(item)?;
            }
        }
        let mut elements = read.sections.iter().flat_map(|section| &section.elements);
        if blocks.is_empty() && elements.any(|element| matches!(element, Element::Image(_))) {
            return Err(error::pictures());
        }
        blocks.finish()
    }
}

fn items(element: &Element, depth: usize) -> Vec<BodyItem> {
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    match element {
        Element::Heading(heading) => {
            vec![BodyItem::Heading { level: heading.clamped_level(), text: inline_to_text(&heading.content) }]
        }
        Element::Paragraph(paragraph) => vec![BodyItem::Paragraph(inline_to_text(&paragraph.content))],
        Element::List(list) => listed(list, 0, depth),
        Element::Table(table) => {
            let mut rows = Table::default();
            for row in &table.rows {
                for cell in &row.cells {
                    rows.open_cell();
                    all(&cell.content, depth).into_iter().for_each(|item| rows.push(item));
                }
                rows.close_row();
            }
            rows.close()
        }
        Element::TextBox(text_box) => all(&text_box.content, depth),
        Element::Footnote(note) | Element::Endnote(note) => all(&note.content, depth),
        Element::CodeBlock(code) => vec![BodyItem::Paragraph(code.content.clone())],
        _ => Vec::new(),
    }
}

fn all(elements: &[Element], depth: usize) -> Vec<BodyItem> {
    elements.iter().flat_map(|element| items(element, depth + 1)).collect()
}

fn listed(list: &List, level: u8, depth: usize) -> Vec<BodyItem> {
    let mut found = Vec::new();
    if depth > MAX_DEPTH {
        return found;
    }
    for (item, number) in list.items.iter().zip(list.start_number.unwrap_or(1)..) {
        let mark = if list.ordered { format!("{number}.") } else { "-".to_owned() };
        let text = crate::body_item::one_line(&all(&item.content, depth));
        found.push(BodyItem::ListItem { level, mark, text });
        if let Some(nested) = &item.nested {
            found.extend(listed(nested, level.saturating_add(1), depth + 1));
        }
    }
    found
}
