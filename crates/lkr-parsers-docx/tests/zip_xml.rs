//! What `DocxXml` makes of documents.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{archive, docx, file, plain};
use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Error, ErrorKind, Parser, Source};
use lkr_parsers_docx::DocxXml;

fn parse(bytes: &[u8]) -> Result<Parsed, Error> {
    DocxXml.parse(&Source::new(bytes))
}

/// The blocks in short: a letter for the kind, a heading's level, the text.
#[track_caller]
fn check(bytes: &[u8], expected: &[&str]) {
    let parsed = parse(bytes).unwrap();
    let describe = |block: &lkr_domain::Block| {
        let text = parsed.text.get(block.range.clone()).unwrap();
        match &block.kind {
            BlockKind::Heading { level, title } => format!("h{level} {title}"),
            BlockKind::Paragraph => format!("p {text}"),
            BlockKind::List => format!("l {text}"),
            BlockKind::Table => format!("t {text}"),
            BlockKind::Code => format!("c {text}"),
        }
    };
    assert_eq!(parsed.blocks.iter().map(describe).collect::<Vec<_>>(), expected);
}

#[track_caller]
fn refused(bytes: &[u8], kind: ErrorKind, reason: &str) {
    let error = parse(bytes).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains(reason)), (kind, true), "{error}");
}

/// A paragraph in a style.
fn styled(style: &str, text: &str) -> String {
    format!("<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

const STYLES: &str = "<w:styles>\
    <w:style w:type=\"paragraph\" w:default=\"1\" w:styleId=\"a\"><w:name w:val=\"Normal\"/></w:style>\
    <w:style w:styleId=\"T\"><w:name w:val=\"Title\"/></w:style>\
    <w:style w:styleId=\"b2\"><w:name w:val=\"heading 2\"/></w:style>\
    <w:style w:styleId=\"mine\"><w:name w:val=\"Chapter\"/><w:basedOn w:val=\"b2\"/></w:style>\
    <w:style w:styleId=\"toc\"><w:basedOn w:val=\"b2\"/><w:pPr><w:outlineLvl w:val=\"9\"/></w:pPr></w:style>\
    <w:style w:styleId=\"out\"><w:name w:val=\"x\"/><w:pPr><w:outlineLvl w:val=\"3\"/></w:pPr></w:style>\
    <w:style w:styleId=\"loop\"><w:basedOn w:val=\"loop\"/></w:style>\
    <w:style w:styleId=\"gone\"><w:rPr><w:vanish/></w:rPr></w:style>\
    </w:styles>";

#[test]
fn headings_by_their_styles() {
    let body: String = ["T", "b2", "mine", "toc", "out", "loop", "none"].map(|id| styled(id, id)).concat();
    let own = "<w:p><w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr><w:r><w:t>own</w:t></w:r></w:p>";
    check(
        &docx(&(body + own), &[("styles", STYLES)]),
        &["h1 T", "h2 b2", "h2 mine", "p toc", "h4 out", "p loop", "p none", "h1 own"],
    );
}

#[test]
fn changes_and_hidden_words() {
    let body = "<w:p><w:r><w:t xml:space=\"preserve\">a </w:t></w:r>\
        <w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>\
        <w:moveFrom><w:r><w:t>from</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>to</w:t></w:r></w:moveTo>\
        <w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>\
        <w:r><w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>seen</w:t></w:r>\
        <w:r><w:rPr><w:rStyle w:val=\"gone\"/></w:rPr><w:t>hidden</w:t></w:r>\
        <w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>";
    check(&docx(&(body.to_owned() + &styled("gone", "x")), &[("styles", STYLES)]), &["p a newtoseenlink"]);
}

#[test]
fn hidden_runs_hide_what_hangs_on_them() {
    let notes = "<w:footnotes><w:footnote w:id=\"2\"><w:p><w:r><w:t>note</w:t></w:r></w:p></w:footnote></w:footnotes>";
    let hidden = "<w:rPr><w:vanish/></w:rPr>";
    let row = format!("<w:tbl><w:tr><w:tc>{0}</w:tc><w:tc>{0}</w:tc></w:tr></w:tbl>", plain("cell"));
    let body = format!(
        "<w:p><w:r>{hidden}<w:footnoteReference w:id=\"2\"/>\
         <w:txbxContent>{}{row}<w:p><w:r><w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>box</w:t></w:r></w:p></w:txbxContent>\
         <w:ruby><w:rt><w:r><w:t>ruby</w:t></w:r></w:rt></w:ruby><w:t>after</w:t></w:r>\
         <m:oMath><m:r>{hidden}<m:t>math</m:t></m:r></m:oMath><w:r><w:t>seen</w:t></w:r></w:p>",
        plain("box")
    );
    check(&docx(&body, &[("footnotes", notes)]), &["p seen"]);
}

/// A paragraph of white words, with these properties of its own and of its run.
fn white(paragraph: &str, run: &str) -> String {
    format!(
        "<w:p><w:pPr>{paragraph}</w:pPr><w:r><w:rPr><w:color w:val=\"FFFFFF\"/>{run}</w:rPr><w:t>white</w:t></w:r></w:p>"
    )
}

#[test]
fn white_words_are_hidden() {
    let light = "<w:shd w:val=\"clear\" w:color=\"auto\" w:fill=\"FEFEFE\"/>";
    let dark = "<w:shd w:val=\"clear\" w:fill=\"000080\"/>";
    let cell = |content: &str| format!("<w:tc><w:tcPr>{light}</w:tcPr>{content}</w:tc>");
    let styles = "<w:styles><w:style w:styleId=\"pale\"><w:rPr><w:color w:val=\"f0F1ff\"/></w:rPr></w:style></w:styles>";
    let body = [
        white("", ""),
        white(light, "<w:highlight w:val=\"white\"/>"),
        white("<w:rPr><w:shd w:val=\"clear\" w:fill=\"000080\"/></w:rPr>", ""),
        styled("pale", "pale"),
        format!("<w:tbl><w:tr>{}{}</w:tr></w:tbl>", cell(&white("", "")), cell(&plain("cell"))),
        format!(
            "<w:tbl><w:tr><w:tc><w:tcPr><w:tcPrChange>{dark}</w:tcPrChange></w:tcPr>{}</w:tc></w:tr></w:tbl>",
            white("", "")
        ),
        plain("end"),
    ];
    check(&docx(&body.concat(), &[("styles", styles)]), &["t | cell", "p end"]);
}

#[test]
fn white_words_on_a_ground_are_read() {
    let dark = "<w:shd w:val=\"clear\" w:fill=\"000080\"/>";
    let styles = format!(
        "<w:styles><w:style w:styleId=\"banner\"><w:pPr>{dark}</w:pPr></w:style>\
         <w:style w:styleId=\"grid\"><w:tblStylePr><w:tcPr>{dark}</w:tcPr></w:tblStylePr></w:style></w:styles>"
    );
    let cells = |first: &str| {
        format!("<w:tr><w:tc><w:tcPr>{first}</w:tcPr>{0}</w:tc><w:tc>{0}</w:tc></w:tr>", white("", ""))
    };
    for (body, expected) in [
        (white(dark, ""), "p white"),
        (white("", dark), "p white"),
        (white("", "<w:shd w:val=\"solid\" w:color=\"000000\"/>"), "p white"),
        (white("", "<w:shd w:val=\"clear\" w:themeFill=\"accent1\"/>"), "p white"),
        (white("", "<w:highlight w:val=\"red\"/>"), "p white"),
        (white("", "<w:color w:val=\"auto\"/>"), "p white"),
        (white("", "<w:color w:val=\"EFFFFF\"/>"), "p white"),
        (white("<w:pStyle w:val=\"banner\"/>", ""), "p white"),
        (format!("<w:tbl>{}</w:tbl>", cells(dark)), "t white |"),
        (format!("<w:tbl><w:tblPr>{dark}</w:tblPr>{}</w:tbl>", cells("")), "t white | white"),
        (
            format!("<w:tbl><w:tblPr><w:tblStyle w:val=\"grid\"/></w:tblPr>{}</w:tbl>", cells("")),
            "t white | white",
        ),
        (format!("<w:p><w:r><w:txbxContent>{}</w:txbxContent></w:r></w:p>", white("", "")), "p white"),
    ] {
        check(&docx(&body, &[("styles", &styles)]), &[expected]);
    }
    let page = "<w:document xmlns:w=\"http://purl.oclc.org/ooxml/wordprocessingml/main\">\
        <w:background w:color=\"002060\"/><w:body>";
    check(&file(format!("{page}{}</w:body></w:document>", white("", "")).as_bytes(), &[]), &["p white"]);
}

/// A text box of white words whose shape has these properties, and this style.
fn boxed(properties: &str, style: &str) -> String {
    format!(
        "<w:p><w:r><w:t>seen</w:t><wps:wsp><wps:spPr>{properties}</wps:spPr>{style}<wps:txbx><w:txbxContent>{}\
         </w:txbxContent></wps:txbx></wps:wsp></w:r></w:p>",
        white("", "")
    )
}

/// The same as older programs write it.
fn old_boxed(attributes: &str, fill: &str) -> String {
    format!(
        "<w:p><w:r><w:t>seen</w:t><v:shape {attributes}>{fill}<v:textbox><w:txbxContent>{}</w:txbxContent></v:textbox>\
         </v:shape></w:r></w:p>",
        white("", "")
    )
}

#[test]
fn white_words_in_white_boxes_are_hidden() {
    let line = "<a:ln><a:solidFill><a:srgbClr val=\"000000\"/></a:solidFill></a:ln>";
    let unfilled = "<wps:style><a:fillRef idx=\"0\"><a:schemeClr val=\"accent1\"/></a:fillRef></wps:style>";
    let filled = "<wps:style><a:fillRef idx=\"1\"><a:schemeClr val=\"accent1\"/></a:fillRef></wps:style>";
    let plain = |color: &str| format!("<a:solidFill>{color}</a:solidFill>");
    for body in [
        boxed("<a:noFill/>", ""),
        boxed(&format!("<a:noFill/>{line}"), filled),
        boxed(line, unfilled),
        boxed("", ""),
        boxed(&plain("<a:srgbClr val=\"FFFFFF\"/>"), ""),
        boxed(&plain("<a:schemeClr val=\"bg1\"/>"), filled),
        boxed(&plain("<a:sysClr val=\"window\" lastClr=\"FFFFFF\"/>"), ""),
        old_boxed("", ""),
        old_boxed("filled=\"f\" fillcolor=\"red\"", "<v:fill type=\"tile\"/>"),
        old_boxed("fillcolor=\"white [3212]\"", "<v:fill color=\"#fefefe\"/>"),
    ] {
        check(&docx(&body, &[]), &["p seen"]);
    }
}

#[test]
fn white_words_in_colored_boxes_are_read() {
    let plain = |color: &str| format!("<a:solidFill>{color}</a:solidFill>");
    let filled = "<wps:style><a:fillRef idx=\"1\"><a:schemeClr val=\"accent1\"/></a:fillRef></wps:style>";
    for body in [
        boxed(&plain("<a:srgbClr val=\"002060\"/>"), ""),
        boxed(&plain("<a:schemeClr val=\"accent1\"/>"), ""),
        boxed(&plain("<a:schemeClr val=\"bg1\"><a:lumMod val=\"50000\"/></a:schemeClr>"), ""),
        boxed("<a:gradFill/>", ""),
        boxed("", filled),
        old_boxed("fillcolor=\"#002060\"", ""),
        old_boxed("", "<v:fill type=\"gradient\"/>"),
    ] {
        check(&docx(&body, &[]), &["p seen", "p white"]);
    }
}

#[test]
fn white_words_in_clear_boxes_are_read_where_something_may_lie_behind_them() {
    let clear = boxed("<a:noFill/>", "");
    let picture = "<w:p><w:r><pic:pic/></w:r></w:p>";
    check(&docx(&(clear.clone() + picture), &[]), &["p seen", "p white"]);
    let shape = boxed("<a:gradFill/>", "");
    check(&docx(&(clear + &shape), &[]), &["p seen", "p white", "p seen", "p white"]);
    let opaque = boxed("<a:solidFill><a:srgbClr val=\"FFFFFF\"/></a:solidFill>", "");
    check(&docx(&(opaque + picture), &[]), &["p seen"]);
}

#[test]
fn a_heading_has_few_words() {
    let (short, long) = ("a".repeat(300), "a ".repeat(151));
    let body = styled("T", &short) + &styled("T", &long);
    check(&docx(&body, &[("styles", STYLES)]), &[&format!("h1 {short}"), &format!("p {}", long.trim_end())]);
}

#[test]
fn characters() {
    let body = "<w:p><w:r><w:t>a&amp;&#98;&lt;&unknown;</w:t><w:tab/><w:t>c</w:t><w:br/><w:t>d</w:t><w:noBreakHyphen/>\
        <w:softHyphen/><w:t><![CDATA[e<]]></w:t><w:sym w:char=\"F0FC\"/><w:sym w:char=\"2713\"/></w:r>\
        <m:oMath><m:r><m:t>x</m:t></m:r><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:oMath></w:p>";
    check(&docx(body, &[]), &["p a&b<\tc\nd\u{2011}e<✓x^2"]);
}

#[test]
fn lists_have_their_marks() {
    let numbering = "<w:numbering><w:abstractNum w:abstractNumId=\"1\">\
        <w:lvl w:ilvl=\"0\"><w:start w:val=\"2\"/><w:numFmt w:val=\"decimal\"/><w:lvlText w:val=\"%1.\"/></w:lvl>\
        <w:lvl w:ilvl=\"1\"><w:numFmt w:val=\"lowerLetter\"/><w:lvlText w:val=\"%1%2)\"/></w:lvl></w:abstractNum>\
        <w:abstractNum w:abstractNumId=\"2\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"bullet\"/></w:lvl></w:abstractNum>\
        <w:num w:numId=\"1\"><w:abstractNumId w:val=\"1\"/></w:num>\
        <w:num w:numId=\"2\"><w:abstractNumId w:val=\"2\"/></w:num>\
        <w:num w:numId=\"3\"><w:abstractNumId w:val=\"1\"/><w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"7\"/></w:lvlOverride></w:num>\
        </w:numbering>";
    let item = |list: u8, level: u8| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr></w:pPr>\
             <w:r><w:t>x</w:t></w:r></w:p>"
        )
    };
    let body =
        [(1, 0), (1, 1), (1, 1), (1, 0), (2, 0), (9, 0), (0, 0), (3, 0)].map(|(a, b)| item(a, b)).concat();
    check(
        &docx(&body, &[("numbering", numbering)]),
        &["l 2. x\n  2a) x\n  2b) x\n3. x\n- x\n- x", "p x", "l 7. x"],
    );
}

#[test]
fn tables() {
    let cell = |content: &str| format!("<w:tc>{content}</w:tc>");
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let inner = format!("<w:tbl>{}</w:tbl>", row(&[cell(&plain("in")), cell(&plain("ner"))]));
    let body = format!(
        "<w:tbl>{}{}</w:tbl>{}",
        row(&[cell(&(plain("a") + &plain("b"))), cell(&plain("c"))]),
        row(&[cell(&inner), cell(&plain(""))]),
        plain("after")
    );
    check(&docx(&body, &[]), &["t a b | c\nin | ner |", "p after"]);
    let frame = format!("<w:tbl>{}</w:tbl>", row(&[cell(&(styled("b2", "head") + &plain("text")))]));
    check(&docx(&frame, &[("styles", STYLES)]), &["h2 head", "p text"]);
}

#[test]
fn notes_and_boxes() {
    let notes = "<w:footnotes><w:footnote w:id=\"2\"><w:p><w:r><w:t>See</w:t></w:r></w:p>\
        <w:p><w:r><w:t>there.</w:t></w:r></w:p></w:footnote><w:footnote w:id=\"3\"/></w:footnotes>";
    let body = "<w:p><w:r><w:t>words</w:t><w:footnoteReference w:id=\"2\"/><w:footnoteReference w:id=\"3\"/></w:r>\
        <w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Choice>\
        <mc:Fallback><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent>\
        <w:t> more</w:t></w:r></w:p>";
    check(&docx(body, &[("footnotes", notes)]), &["p words[1] more", "p box", "p [1] See there."]);
}

#[test]
fn other_encodings() {
    let space = "xmlns:w=\"http://purl.oclc.org/ooxml/wordprocessingml/main\"";
    let body = format!("<w:document {space}><w:body>{}</w:body></w:document>", plain("Café"));
    let wide: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&file(&wide, &[]), &["p Café"]);
    let latin = format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>{body}").replace('é', "\u{1}");
    let latin: Vec<u8> = latin.bytes().map(|byte| if byte == 1 { 0xe9 } else { byte }).collect();
    check(&file(&latin, &[]), &["p Café"]);
}

#[test]
fn what_is_no_document_is_refused() {
    refused(&archive(&[("a", b"b")]), ErrorKind::Input, "no main part");
    refused(&file(b"<a/>", &[]), ErrorKind::Input, "no Word document");
    refused(&file(b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", &[]), ErrorKind::Input, "document type");
    refused(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", ErrorKind::Input, "a picture");
}

#[test]
fn bounds() {
    refused(&docx(&"<w:tbl><w:tr><w:tc>".repeat(200), &[]), ErrorKind::Limit, "512 deep");
    let long = " ".repeat(17 << 20);
    refused(&docx(&plain(&long), &[]), ErrorKind::Limit, "16 MiB");
    let paragraph = plain(&"word ".repeat(200_000));
    refused(&docx(&paragraph.repeat(70), &[]), ErrorKind::Limit, "64 MiB of text");
}

#[test]
fn broken_parts_leave_the_rest() {
    let parsed = parse(&docx(&(plain("one") + "<w:p><w:r><w:t>two</w:p>"), &[])).unwrap();
    assert_eq!((parsed.text.as_str(), parsed.warnings.len()), ("one\n\ntwo", 1));
    let parsed = parse(&docx(&plain("one"), &[("styles", "<w:styles><broken")])).unwrap();
    assert_eq!((parsed.text.as_str(), parsed.warnings.len()), ("one", 1));
}

#[test]
fn time_is_kept() {
    let bytes = docx(&plain("word").repeat(5000), &[]);
    let source = Source { deadline: Some(std::time::Instant::now()), ..Source::new(&bytes) };
    let parsed = DocxXml.parse(&source).unwrap();
    assert!(parsed.text.len() < 5000 * 4 && !parsed.text.is_empty());
    assert_eq!(parsed.warnings, ["time ran out: the rest of the text was not read"]);
}
