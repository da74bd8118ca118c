use dom_query::Document;
use html2text::{Element, Handle, RcDom, config};
use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Parser, Result, Source};

use crate::{
    charset, error, page,
    picture::refuse_pictures,
    sanitize,
    style_sheet::StyleSheet,
    visibility::{TextVisibility, visibility_in},
};

/// Longer than any line, so that lines are never wrapped.
const WIDTH: usize = 1_000_000;

/// Most tags of a page: the crate needs some 2 KiB of memory for each.
const MAX_TAGS: usize = 150_000;

/// Most lines of a page.
const MAX_LINES: usize = 500_000;

/// Most digits of a number in `colspan`, `rowspan` and `start`: the crate counts up to it.
const MAX_DIGITS: usize = 4;

/// Parses HTML pages with the crate `html2text`: all text as paragraphs, without structure.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainHtml;

impl Parser for PlainHtml {
    fn name(&self) -> &'static str {
        "html2text"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let decoded = charset::read(source);
        let sanitized = sanitize::sanitize(&decoded.text, MAX_TAGS);
        check_limits(&sanitized.html)?;
        let mut composer = Composer::new();
        decoded.warnings().for_each(|warning| composer.warn(warning));
        sanitized.warnings().for_each(|warning| composer.warn(warning));
        let text = render(&sanitized.html).map_err(error::html2text)?;
        for paragraph in text.split("\n\n") {
            composer.push(BlockKind::Paragraph, paragraph, None)?;
        }
        refuse_pictures(composer.finish()?, &sanitized.html)
    }
}

fn render(html: &str) -> std::result::Result<String, html2text::Error> {
    let config = config::plain_no_decorate().link_footnotes(false).raw_mode(true);
    let page = config.parse_html(html.as_bytes())?;
    remove_hidden(&page, &trusted_styles(html));
    let tree = config.dom_to_render_tree(&page)?;
    config.render_to_string(tree, WIDTH)
}

/// The page's style sheets, as far as they are trusted.
fn trusted_styles(html: &str) -> StyleSheet {
    let style_sheet = StyleSheet::from_page(html);
    if style_sheet.has_rules() || html.contains("aria-hidden") {
        return page::trusted_styles(&Document::from(html), style_sheet);
    }
    style_sheet
}

/// Removes hidden elements and text, because the crate does not evaluate visibility.
fn remove_hidden(page: &RcDom, style_sheet: &StyleSheet) {
    let mut open_nodes = vec![(Handle::clone(&page.document), TextVisibility::default())];
    while let Some((node, visibility)) = open_nodes.pop() {
        // Elements inside invisible ones stay, because they may be visible.
        node.children.borrow_mut().retain(|child| {
            let is_element = matches!(child.data, Element { .. });
            if !is_element {
                return visibility.is_visible();
            }
            let inside = visibility_of(child, style_sheet, &visibility);
            open_nodes.extend(inside.map(|inside| (Handle::clone(child), inside)));
            inside.is_some()
        });
    }
}

/// The visibility of text in a node; `None` if all of it is hidden.
fn visibility_of(node: &Handle, style_sheet: &StyleSheet, outer: &TextVisibility) -> Option<TextVisibility> {
    let Element { name, attrs, .. } = &node.data else {
        return Some(*outer);
    };
    let attrs = attrs.borrow();
    let value = |attribute: &str| {
        let found = attrs.iter().find(|other| &*other.name.local == attribute);
        found.map(|found| &*found.value)
    };
    visibility_in(&name.local, value, style_sheet, outer)
}

/// Rejects pages that the crate cannot render in bounded time and memory.
fn check_limits(html: &str) -> Result<()> {
    if html.bytes().filter(|byte| *byte == b'\n').count() > MAX_LINES {
        return Err(error::limit("page has more than 500,000 lines"));
    }
    if ["colspan", "rowspan", "start"].iter().any(|name| has_large_number(html, name)) {
        return Err(error::limit("colspan, rowspan or start of an element is above 9,999"));
    }
    Ok(())
}

/// Whether an attribute of this name has a number with too many digits.
fn has_large_number(html: &str, name: &str) -> bool {
    let is_large = |value: &[u8]| {
        let value = value.trim_ascii_start();
        let Some(value) = value.strip_prefix(b"=") else {
            return false;
        };
        let is_filler = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\t' | b'"' | b'\'' | b'+' | b'-' | b'0');
        let number = value.iter().skip_while(is_filler);
        number.take(MAX_DIGITS + 1).filter(|byte| byte.is_ascii_digit()).count() > MAX_DIGITS
    };
    let windows = html.as_bytes().windows(name.len()).enumerate();
    let found = windows.filter(|(_, window)| window.eq_ignore_ascii_case(name.as_bytes()));
    found.map(|(at, _)| at + name.len()).any(|at| html.as_bytes().get(at..).is_some_and(is_large))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_text_becomes_paragraphs() {
        let page = "<title>x</title><h1>One</h1><p>Two <b>bold</b><ul><li>three</ul>";
        let parsed = PlainHtml.parse(&page.into()).unwrap();
        assert_eq!(parsed.text, "# One\n\nTwo bold\n* three");
        assert!(parsed.blocks.iter().all(|block| block.kind == BlockKind::Paragraph && !block.furniture));
    }

    #[test]
    fn hidden_text_is_removed() {
        let page = "<p>a<p hidden>b<div style='display:none'><p>c</div><dialog>d</dialog><noscript>e</noscript>\
                    <p style='font-size:0'>f<span style='font-size:12px'>g</span><i>h</i><p>i";
        assert_eq!(PlainHtml.parse(&page.into()).unwrap().text, "a\n\ng\n\ni");
    }

    #[test]
    fn large_numbers_in_attributes_exceed_limit() {
        for page in [
            "<ol start=9223372036854775807><li>a</ol>",
            "<td COLSPAN = '00065534'>",
            "<td rowspan=\"12345\">",
        ] {
            assert_eq!(
                PlainHtml.parse(&page.into()).unwrap_err().kind(),
                lkr_parsers::ErrorKind::Limit,
                "{page}"
            );
        }
        assert!(PlainHtml.parse(&"<ol start=2020><li>to start 123456</ol>".into()).is_ok());
        assert!(PlainHtml.parse(&"\n".repeat(MAX_LINES + 1).as_str().into()).is_err());
    }
}
