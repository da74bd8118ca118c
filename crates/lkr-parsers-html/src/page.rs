//! Finds the visible text units of a page.

mod script;
mod walk;

use dom_query::{Document, NodeRef};

use crate::{
    style_sheet::StyleSheet,
    unit::{TextUnit, UnitKind},
    visibility::leaves_too_little,
};
pub(crate) use script::{ScriptKind, script_kind};
use walk::{Context, PageWalk};

/// The visible text of a page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// All units in the order of the source.
    pub(crate) units: Vec<TextUnit>,
    /// For each boilerplate element, the index of the nearest one around it.
    pub(crate) boilerplate: Vec<Option<usize>>,
}

/// The style sheets of a page, without rules that would hide all or nearly all of it.
pub(crate) fn trusted_styles(document: &Document, mut style_sheet: StyleSheet) -> StyleSheet {
    let has_aria_hidden = document.select("[aria-hidden]").exists();
    if !has_aria_hidden && !style_sheet.has_rules() {
        return style_sheet;
    }
    let visible = read(document, &style_sheet).chars();
    let without_rules = style_sheet.without_rules();
    if leaves_too_little(visible, read(document, &without_rules).chars()) {
        return without_rules;
    }
    style_sheet.ignores_aria_hidden = visible == 0;
    style_sheet
}

/// Reads the visible text of a page, in one walk through its tree.
pub(crate) fn read(document: &Document, style_sheet: &StyleSheet) -> Page {
    let mut walk = PageWalk::new(style_sheet);
    let mut context = Context::default();
    let mut open_elements: Vec<(NodeRef<'_>, Context)> = Vec::new();
    let mut next = Some(document.root());
    loop {
        let Some(node) = next else {
            let Some((node, outer)) = open_elements.pop() else {
                return walk.finish();
            };
            walk.end(&context);
            context = outer;
            next = node.next_sibling();
            continue;
        };
        match walk.enter(&node, context) {
            Some(inner) if node.may_have_children() => {
                open_elements.push((node, context));
                context = inner;
                next = node.first_child();
            }
            _ => next = node.next_sibling(),
        }
    }
}

impl Page {
    /// How many characters the units have, without the title and white space.
    fn chars(&self) -> usize {
        let units = self.units.iter().filter(|unit| unit.kind != UnitKind::Title);
        units.map(|unit| unit.text.chars().filter(|c| !c.is_whitespace()).count()).sum()
    }
}
