//! White text: `DocxXml` keeps it only on a visible background.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{check, docx, file, parse, plain, styled};
use lkr_domain::Parsed;
use lkr_parsers::{Clock, Deadline, Parser, Source};
use lkr_parsers_docx::DocxXml;

/// A paragraph of white text with these properties of the paragraph and of its run.
fn white(paragraph: &str, run: &str) -> String {
    format!(
        "<w:p><w:pPr>{paragraph}</w:pPr><w:r><w:rPr><w:color w:val=\"FFFFFF\"/>{run}</w:rPr><w:t>white</w:t></w:r></w:p>"
    )
}

#[test]
fn white_text_on_white_is_hidden() {
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
fn white_text_on_coloured_background_is_kept() {
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

/// A paragraph of text with these colour attributes and run properties.
fn colored(color: &str, run: &str) -> String {
    format!("<w:p><w:r><w:rPr><w:color {color}/>{run}</w:rPr><w:t>ink</w:t></w:r></w:p>")
}

#[test]
fn theme_colour_overrides_literal_colour() {
    let paper = "w:val=\"000000\" w:themeColor=\"background1\"";
    let shade = |attributes: &str| format!("<w:shd w:val=\"clear\" {attributes}/>");
    let white_fill = shade("w:fill=\"000000\" w:themeFill=\"background1\"");
    let dark_fill = shade("w:fill=\"FFFFFF\" w:themeFill=\"text1\"");
    for (body, is_seen) in [
        (colored(paper, ""), false),
        (colored("w:themeColor=\"light1\" w:themeShade=\"F2\"", ""), false),
        (colored(paper, &white_fill), false),
        (colored(paper, &dark_fill), true),
        (colored("w:val=\"FFFFFF\"", &dark_fill), true),
        (colored("w:val=\"FFFFFF\"", &white_fill), false),
        (colored("w:val=\"FFFFFF\" w:themeColor=\"text1\"", ""), true),
        (colored("w:val=\"F2F2F2\" w:themeColor=\"text1\" w:themeTint=\"0D\"", ""), false),
        (colored("w:val=\"7F7F7F\" w:themeColor=\"background1\" w:themeShade=\"7F\"", ""), true),
        (colored("w:val=\"FFFFFF\" w:themeColor=\"none\"", ""), false),
    ] {
        let expected: &[&str] = if is_seen { &["p ink", "p end"] } else { &["p end"] };
        check(&docx(&(body + &plain("end")), &[]), expected);
    }
    let theme = |color: &str| {
        format!(
            "<a:theme><a:themeElements><a:clrScheme><a:lt1>{color}</a:lt1></a:clrScheme></a:themeElements></a:theme>"
        )
    };
    let white = theme("<a:sysClr val=\"window\" lastClr=\"FFFFFF\"/>");
    let dark = theme("<a:srgbClr val=\"202020\"/>");
    let turned = "<w:settings><w:clrSchemeMapping w:bg1=\"dark1\" w:t1=\"light1\"/></w:settings>";
    let body = colored(paper, "") + &plain("end");
    check(&docx(&body, &[("theme", &white)]), &["p end"]);
    check(&docx(&body, &[("theme", &dark)]), &["p ink", "p end"]);
    check(&docx(&body, &[("theme", &white), ("settings", turned)]), &["p ink", "p end"]);
    let broken = parse(&docx(&body, &[("theme", "<a:theme><broken")])).unwrap();
    assert_eq!((broken.text.as_str(), broken.warnings.len()), ("ink\n\nend", 0));
}

/// A text box with white text in a shape with these properties and this style.
fn in_box(properties: &str, style: &str) -> String {
    format!(
        "<w:p><w:r><w:t>seen</w:t><wps:wsp><wps:spPr>{properties}</wps:spPr>{style}<wps:txbx><w:txbxContent>{}\
         </w:txbxContent></wps:txbx></wps:wsp></w:r></w:p>",
        white("", "")
    )
}

/// The same in VML.
fn in_vml_box(attributes: &str, fill: &str) -> String {
    format!(
        "<w:p><w:r><w:t>seen</w:t><v:shape {attributes}>{fill}<v:textbox><w:txbxContent>{}</w:txbxContent></v:textbox>\
         </v:shape></w:r></w:p>",
        white("", "")
    )
}

#[test]
fn white_text_in_white_text_box_is_hidden() {
    let line = "<a:ln><a:solidFill><a:srgbClr val=\"000000\"/></a:solidFill></a:ln>";
    let unfilled = "<wps:style><a:fillRef idx=\"0\"><a:schemeClr val=\"accent1\"/></a:fillRef></wps:style>";
    let filled = "<wps:style><a:fillRef idx=\"1\"><a:schemeClr val=\"accent1\"/></a:fillRef></wps:style>";
    let plain = |color: &str| format!("<a:solidFill>{color}</a:solidFill>");
    for body in [
        in_box("<a:noFill/>", ""),
        in_box(&format!("<a:noFill/>{line}"), filled),
        in_box(line, unfilled),
        in_box("", ""),
        in_box(&plain("<a:srgbClr val=\"FFFFFF\"/>"), ""),
        in_box(&plain("<a:schemeClr val=\"bg1\"/>"), filled),
        in_box(&plain("<a:sysClr val=\"window\" lastClr=\"FFFFFF\"/>"), ""),
        in_vml_box("", ""),
        in_vml_box("filled=\"f\" fillcolor=\"red\"", "<v:fill type=\"tile\"/>"),
        in_vml_box("fillcolor=\"white [3212]\"", "<v:fill color=\"#fefefe\"/>"),
        in_vml_box("fillcolor=\"black\"", "<v:fill on=\"f\"/>"),
        in_vml_box("fillcolor=\"black\"", "<v:fill opacity=\"0\"/>"),
        in_vml_box("", "").replace("v:shape", "v:arc"),
        in_vml_box("", "").replace("v:shape", "v:line"),
        in_box(
            &plain("<a:srgbClr val=\"000000\"><a:alpha val=\"0\"/><a:lumMod val=\"50000\"/></a:srgbClr>"),
            "",
        ),
        in_box(&plain("<a:scrgbClr r=\"100000\" g=\"100%\" b=\"96000\"/>"), ""),
        in_box("", &filled.replace("schemeClr val=\"accent1\"", "srgbClr val=\"FFFFFF\"")),
        format!("<w:p><w:r><w:t>seen</w:t>{}</w:r></w:p>", white("", "")),
    ] {
        check(&docx(&body, &[]), &["p seen"]);
    }
}

#[test]
fn white_text_in_coloured_text_box_is_kept() {
    let plain = |color: &str| format!("<a:solidFill>{color}</a:solidFill>");
    let filled = "<wps:style><a:fillRef idx=\"1\"><a:schemeClr val=\"accent1\"/></a:fillRef></wps:style>";
    for body in [
        in_box(&plain("<a:srgbClr val=\"002060\"/>"), ""),
        in_box(&plain("<a:schemeClr val=\"accent1\"/>"), ""),
        in_box(&plain("<a:schemeClr val=\"bg1\"><a:lumMod val=\"50000\"/></a:schemeClr>"), ""),
        in_box("<a:gradFill/>", ""),
        in_box("", filled),
        in_vml_box("fillcolor=\"#002060\"", ""),
        in_vml_box("", "<v:fill type=\"gradient\"/>"),
        in_vml_box("fillcolor=\"black\"", "<v:fill opacity=\".5\"/>"),
        in_box(&plain("<a:srgbClr val=\"000000\"><a:alpha val=\"50%\"/></a:srgbClr>"), ""),
        in_box("", &filled.replace("idx=\"1\"", "idx=\"3\"").replace("accent1", "bg1")),
    ] {
        check(&docx(&body, &[]), &["p seen", "p white"]);
    }
}

#[test]
fn white_text_in_transparent_text_box_is_kept_if_document_has_images() {
    let clear = in_box("<a:noFill/>", "");
    let picture = "<w:p><w:r><pic:pic/></w:r></w:p>";
    check(&docx(&(clear.clone() + picture), &[]), &["p seen", "p white"]);
    let shape = in_box("<a:gradFill/>", "");
    check(&docx(&(clear + &shape), &[]), &["p seen", "p white", "p seen", "p white"]);
    let opaque = in_box("<a:solidFill><a:srgbClr val=\"FFFFFF\"/></a:solidFill>", "");
    check(&docx(&(opaque + picture), &[]), &["p seen"]);
}

#[test]
fn first_pass_is_kept_if_deadline_interrupts_second() {
    // White text in a transparent box comes first, and the image that may be behind it last.
    let body = in_box("<a:noFill/>", "") + &plain("word").repeat(30_000) + "<w:p><w:r><pic:pic/></w:r></w:p>";
    let bytes = docx(&body, &[]);
    let words = |parsed: &Parsed| parsed.text.matches("word").count();
    let started = std::time::Instant::now();
    let all = parse(&bytes).unwrap();
    assert_eq!((words(&all), all.text.contains("white")), (30_000, true));
    // Some of these deadlines pass during the second pass.
    let took = started.elapsed();
    for tenths in 1..=10 {
        let deadline = Some(Deadline::after(Clock::Wall, took * tenths / 10));
        let parsed = DocxXml.parse(&Source { deadline, ..Source::new(&bytes) }).unwrap();
        let is_cut = parsed.warnings.iter().any(|warning| warning.contains("the rest of the text"));
        let is_first = parsed.warnings.iter().any(|warning| warning.contains("white text"));
        assert!(is_cut || words(&parsed) == 30_000, "{tenths}: {:?}", parsed.warnings);
        assert_eq!(parsed.text.contains("white"), !is_cut && !is_first, "{tenths}: {:?}", parsed.warnings);
    }
}
