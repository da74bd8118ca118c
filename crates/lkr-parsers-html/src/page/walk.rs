use dom_query::NodeRef;

use super::{
    Page,
    script::{ScriptKind, marks},
};
use crate::{
    element::{Role, is_boilerplate, role, visibility_in},
    style_sheet::StyleSheet,
    table::is_data_table,
    unit::{TextUnit, UnitKind},
    visibility::TextVisibility,
};

const CELL_SEPARATOR: &str = " | ";

/// Tables beyond this many are read as layout, without a look at their cells.
const MAX_TABLES: usize = 2_000;

/// The properties of the elements around a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    role: Role,
    heading: Option<u8>,
    is_title: bool,
    is_linked: bool,
    boilerplate: Option<usize>,
    is_preformatted: bool,
    visibility: TextVisibility,
    /// What is written after the open superscript or subscript.
    script_end: &'static str,
    /// The number of the table whose row is open.
    row: Option<usize>,
    /// The number of the open table, if it is a data table.
    table: Option<usize>,
    /// How many lists are open.
    lists: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            role: Role::Block,
            heading: None,
            is_title: false,
            is_linked: false,
            boilerplate: None,
            is_preformatted: false,
            visibility: TextVisibility::default(),
            script_end: "",
            row: None,
            table: None,
            lists: 0,
        }
    }
}

impl Context {
    /// Whether block elements do not start a new line here.
    const fn is_flat(&self) -> bool {
        self.row.is_some() || self.heading.is_some() || self.is_title
    }

    /// Whether the element itself made the context flat, rather than one around it.
    const fn is_flat_source(&self) -> bool {
        match self.role {
            Role::Heading(_) => self.row.is_none(),
            Role::Row => self.row.is_some(),
            _ => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct PageWalk<'a> {
    style_sheet: &'a StyleSheet,
    page: Page,
    open_unit: Option<TextUnit>,
    /// The next number of each open list; `None` for an unordered list.
    lists: Vec<Option<i64>>,
    /// The marker of the list item that begins.
    marker: String,
    tables: usize,
    cells: usize,
}

impl<'a> PageWalk<'a> {
    pub(super) fn new(style_sheet: &'a StyleSheet) -> Self {
        Self {
            style_sheet,
            page: Page::default(),
            open_unit: None,
            lists: Vec::new(),
            marker: String::new(),
            tables: 0,
            cells: 0,
        }
    }

    pub(super) fn finish(mut self) -> Page {
        self.flush();
        self.page
    }

    /// Enters a node; returns the context of its children, if they are to be read.
    pub(super) fn enter(&mut self, node: &NodeRef<'_>, context: Context) -> Option<Context> {
        if node.is_text() {
            self.push_text(node, &context);
            return None;
        }
        let Some(name) = node.qual_name_ref().map(|name| name.local.to_string()) else {
            // The document itself. Comments and declarations have no text.
            return (node.is_document() || node.is_fragment()).then_some(context);
        };
        let visibility = visibility_in(node, &name, self.style_sheet, &context.visibility);
        let role = role(node, &name, visibility.is_none());
        let mut inner = Context { role, visibility: visibility.unwrap_or(context.visibility), ..context };
        if is_boilerplate(node, &name) {
            self.page.boilerplate.push(context.boilerplate);
            inner.boilerplate = Some(self.page.boilerplate.len() - 1);
        }
        inner.is_linked |= name == "a";
        self.start(node, &mut inner, &context)?;
        Some(inner)
    }

    fn start(&mut self, node: &NodeRef<'_>, inner: &mut Context, outer: &Context) -> Option<()> {
        match inner.role {
            Role::Hidden => return None,
            Role::Inline => {}
            Role::Script(kind) => self.begin_script(node, kind, inner),
            Role::Spaced => self.separate(),
            Role::Break => self.break_line(node, outer),
            Role::Title => {
                self.flush();
                inner.is_title = true;
            }
            Role::Row if inner.table.is_some() && inner.row.is_none() => {
                self.flush();
                (inner.row, self.cells) = (inner.table, 0);
            }
            Role::Cell if inner.row.is_some() => self.begin_cell(node, inner),
            _ if outer.is_flat() => self.separate(),
            Role::Heading(level) => {
                self.flush();
                inner.heading = Some(level);
            }
            Role::Preformatted => {
                self.flush();
                inner.is_preformatted = true;
            }
            Role::List { ordered } => self.begin_list(node, ordered, inner),
            Role::Item => self.begin_item(node),
            Role::Table => {
                self.flush();
                self.tables += 1;
                inner.table = (self.tables <= MAX_TABLES && is_data_table(node)).then_some(self.tables);
            }
            Role::Row | Role::Cell | Role::Block => self.flush(),
        }
        Some(())
    }

    /// Ends an element.
    pub(super) fn end(&mut self, inner: &Context) {
        match inner.role {
            Role::Hidden | Role::Inline | Role::Break => {}
            Role::Script(_) => self.append(inner.script_end),
            Role::Spaced => self.separate(),
            Role::Title | Role::Heading(_) | Role::Row if inner.is_flat_source() => self.flush(),
            _ if inner.is_flat() => self.separate(),
            Role::List { .. } => {
                self.flush();
                self.lists.truncate(inner.lists.saturating_sub(1));
            }
            Role::Item => {
                self.flush();
                self.marker.clear();
            }
            _ => self.flush(),
        }
    }

    fn begin_list(&mut self, node: &NodeRef<'_>, ordered: bool, inner: &mut Context) {
        self.flush();
        self.lists.truncate(inner.lists);
        let start = || node.attr("start").and_then(|start| start.trim().parse().ok()).unwrap_or(1);
        self.lists.push(ordered.then(start));
        inner.lists = self.lists.len();
    }

    fn begin_item(&mut self, node: &NodeRef<'_>) {
        self.flush();
        let explicit = node.attr("value").and_then(|value| value.trim().parse().ok());
        self.marker = match self.lists.last_mut() {
            Some(Some(next)) => {
                let number: i64 = explicit.unwrap_or(*next);
                *next = number.saturating_add(1);
                format!("{number}.")
            }
            _ => "-".to_owned(),
        };
    }

    fn begin_cell(&mut self, node: &NodeRef<'_>, inner: &Context) {
        if self.cells > 0 {
            let unit = self.unit(inner);
            let text = if unit.text.ends_with(' ') { CELL_SEPARATOR.trim_start() } else { CELL_SEPARATOR };
            unit.push(text, node.id, false);
        }
        self.cells += 1;
    }

    fn begin_script(&mut self, node: &NodeRef<'_>, kind: ScriptKind, inner: &mut Context) {
        inner.script_end = "";
        // A script in a link may be a reference to a note.
        let may_be_reference = inner.is_linked && matches!(kind, ScriptKind::Super | ScriptKind::Sub);
        if may_be_reference || !inner.visibility.is_visible() {
            return;
        }
        let base = self.open_unit.as_ref().map(|unit| unit.text.as_str());
        if base.is_none() && kind != ScriptKind::Numerator {
            return;
        }
        let marks = marks(node, kind, base.unwrap_or_default());
        inner.script_end = marks.after;
        if kind == ScriptKind::Numerator && !marks.before.is_empty() {
            self.unit(inner).push(marks.before, node.id, inner.is_linked);
        } else {
            self.append(marks.before);
        }
    }

    /// Adds a space to the open unit unless it ends with one.
    fn separate(&mut self) {
        if self.open_unit.as_ref().is_some_and(|unit| !unit.text.ends_with(char::is_whitespace)) {
            self.append(" ");
        }
    }

    /// Adds to the last text of the open unit, if there is any.
    fn append(&mut self, text: &str) {
        if let Some(unit) = &mut self.open_unit
            && let Some(last) = unit.spans.last_mut()
        {
            unit.text.push_str(text);
            last.end += text.len();
        }
    }

    /// Ends a line; two line breaks end a paragraph.
    fn break_line(&mut self, node: &NodeRef<'_>, context: &Context) {
        if context.is_flat() {
            return self.separate();
        }
        let Some(unit) = &mut self.open_unit else {
            return;
        };
        if unit.text.ends_with('\n') && unit.kind == UnitKind::Paragraph {
            return self.flush();
        }
        unit.push("\n", node.id, context.is_linked);
    }

    fn push_text(&mut self, node: &NodeRef<'_>, context: &Context) {
        if !context.is_title && !context.visibility.is_visible() {
            return;
        }
        let (id, is_linked) = (node.id, context.is_linked);
        node.query(|data| {
            let dom_query::NodeData::Text { contents } = &data.data else {
                return;
            };
            let is_blank = contents.chars().all(|c| c.is_ascii_whitespace());
            if is_blank && self.open_unit.is_none() && !context.is_preformatted {
                return;
            }
            let unit = self.unit(context);
            if unit.kind == UnitKind::Code {
                unit.push(contents, id, is_linked);
            } else {
                unit.push_words(contents, id, is_linked);
            }
        });
    }

    /// The open unit, or else a new one.
    fn unit(&mut self, context: &Context) -> &mut TextUnit {
        let marker = &mut self.marker;
        self.open_unit.get_or_insert_with(|| {
            let kind = match context {
                Context { is_title: true, .. } => UnitKind::Title,
                Context { row: Some(table), .. } => UnitKind::Row(*table),
                Context { heading: Some(level), .. } => UnitKind::Heading(*level),
                Context { is_preformatted: true, .. } => UnitKind::Code,
                Context { lists: 0, .. } => UnitKind::Paragraph,
                Context { lists, .. } => {
                    UnitKind::ListItem { depth: *lists - 1, marker: std::mem::take(marker) }
                }
            };
            TextUnit::new(kind, context.boilerplate)
        })
    }

    fn flush(&mut self) {
        self.page.units.extend(self.open_unit.take().filter(|unit| !unit.is_blank()));
    }
}
