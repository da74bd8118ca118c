//! A document that is written to files of every kind.

use std::{
    fmt::Write as _,
    io::{Cursor, Write as _},
};

use zip::{ZipWriter, write::SimpleFileOptions};

/// A part of a document.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// The level and the title.
    Heading(u8, String),
    Paragraph(String),
    List(Vec<String>),
}

/// A document.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) parts: Vec<Part>,
}

impl Written {
    /// The document as files of every kind with this name, with their suffixes.
    pub(super) fn files(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        vec![
            (format!("{name}.md"), self.markdown().into_bytes()),
            (format!("{name}.txt"), self.plain_text().into_bytes()),
            (format!("{name}.html"), self.html().into_bytes()),
            (format!("{name}.docx"), self.docx()),
            (format!("{name}.pdf"), self.pdf()),
        ]
    }

    pub(super) fn markdown(&self) -> String {
        self.blocks(|part| match part {
            Part::Heading(level, title) => format!("{} {title}\n\n", "#".repeat((*level).into())),
            Part::Paragraph(words) => format!("{words}\n\n"),
            Part::List(items) => format!("- {}\n\n", items.join("\n- ")),
        })
    }

    /// The titles of the headings.
    pub(super) fn headings(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Heading(_, title) => Some(title.as_str()),
            _ => None,
        })
    }

    /// All words.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(|part| match part {
            Part::Heading(_, words) | Part::Paragraph(words) => words.split(' ').collect::<Vec<_>>(),
            Part::List(items) => items.iter().flat_map(|item| item.split(' ')).collect(),
        })
    }

    fn blocks(&self, block: impl Fn(&Part) -> String) -> String {
        self.parts.iter().map(block).collect()
    }

    fn plain_text(&self) -> String {
        self.blocks(|part| match part {
            Part::Heading(_, words) | Part::Paragraph(words) => format!("{words}\n\n"),
            Part::List(items) => format!("{}\n\n", items.join("\n")),
        })
    }

    fn html(&self) -> String {
        let body = self.blocks(|part| match part {
            Part::Heading(level, title) => format!("<h{level}>{title}</h{level}>"),
            Part::Paragraph(words) => format!("<p>{words}</p>"),
            Part::List(items) => format!("<ul><li>{}</li></ul>", items.join("</li><li>")),
        });
        format!(
            "<!DOCTYPE html><html><head><meta charset=utf-8></head><body><article>{body}</article></body></html>"
        )
    }

    fn docx(&self) -> Vec<u8> {
        let paragraph = |properties: &str, words: &str| {
            format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{words}</w:t></w:r></w:p>")
        };
        let body = self.blocks(|part| match part {
            Part::Heading(level, title) => {
                paragraph(&format!("<w:outlineLvl w:val=\"{}\"/>", level - 1), title)
            }
            Part::Paragraph(words) => paragraph("", words),
            Part::List(items) => items.iter().map(|item| paragraph("", item)).collect(),
        });
        let space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
        let document = format!("<w:document xmlns:w=\"{space}\"><w:body>{body}</w:body></w:document>");
        let office = "http://schemas.openxmlformats.org";
        let types = format!(
            "<Types xmlns=\"{office}/package/2006/content-types\"><Default Extension=\"rels\" \
             ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/><Override \
             PartName=\"/word/document.xml\" ContentType=\"application/\
             vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/></Types>"
        );
        let relations = format!(
            "<Relationships xmlns=\"{office}/package/2006/relationships\"><Relationship Id=\"r\" \
             Type=\"{office}/officeDocument/2006/relationships/officeDocument\" Target=\"word/document.xml\"/>\
             </Relationships>"
        );
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let entries =
            [("[Content_Types].xml", types), ("_rels/.rels", relations), ("word/document.xml", document)];
        for (name, content) in entries {
            writer.start_file(name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// One long page. Headings are larger than text, the larger the higher their level.
    fn pdf(&self) -> Vec<u8> {
        let lines: Vec<(u32, String)> = self.parts.iter().flat_map(pdf_lines).collect();
        let height = 40 * lines.len() as u32 + 120;
        let mut content = String::new();
        for (at, (size, line)) in (1_u32..).zip(&lines) {
            let y = height - 40 * at - 40;
            // The font's encoding is Latin 1, and no word needs an escape.
            writeln!(content, "BT /R {size} Tf 72 {y} Td ({line}) Tj ET").unwrap();
        }
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 900 {height}] /Contents 5 0 R \
             /Resources << /Font << /R 4 0 R >> >> >>"
        );
        let content: Vec<u8> = content.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        let stream = format!("<< /Length {} >> stream\n", content.len());
        let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
        pdf_file(&[
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page.as_bytes(),
            font.as_bytes(),
            &[stream.as_bytes(), &content, b"\nendstream"].concat(),
        ])
    }
}

/// Lines with their font sizes.
fn pdf_lines(part: &Part) -> Vec<(u32, String)> {
    match part {
        Part::Heading(level, title) => vec![(30 - 4 * u32::from(*level), title.clone())],
        Part::Paragraph(words) => {
            let words: Vec<&str> = words.split(' ').collect();
            words.chunks(9).map(|line| (10, line.join(" "))).collect()
        }
        Part::List(items) => items.iter().map(|item| (10, item.clone())).collect(),
    }
}

/// A PDF file of these objects, of which the first is the catalog.
fn pdf_file(objects: &[&[u8]]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in (1..).zip(objects) {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        file.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let start = file.len();
    let size = objects.len() + 1;
    file.extend_from_slice(table.as_bytes());
    file.extend_from_slice(
        format!("trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").as_bytes(),
    );
    file
}
