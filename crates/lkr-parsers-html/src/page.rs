//! One walk through a page, which finds its units.

use dom_query::{Document, NodeRef};

use crate::{
    element::{Role, is_surrounding, look, role},
    hidden::{Place, is_next_to_nothing},
    sheet::Sheet,
    table::holds_data,
    unit::{Shape, Unit},
};

/// What parts the cells of a row.
const BETWEEN_CELLS: &str = " | ";

/// Tables beyond this many are not looked into to tell what they are.
const MAX_TABLES: usize = 2_000;

/// What is visible on a page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// All units in the order of the source.
    pub(crate) units: Vec<Unit>,
    /// For each element that looks like surroundings, the number of the next one around it.
    pub(crate) surroundings: Vec<Option<usize>>,
}

/// The style sheets of a page, less what would leave nothing or next to nothing of it.
pub(crate) fn settle(document: &Document, mut sheet: Sheet) -> Sheet {
    let is_said = document.select("[aria-hidden]").exists();
    if !is_said && !sheet.has_rules() {
        return sheet;
    }
    let left = read(document, &sheet).chars();
    let lenient = sheet.lenient();
    if is_next_to_nothing(left, read(document, &lenient).chars()) {
        return lenient;
    }
    sheet.keeps_aria_hidden = left == 0;
    sheet
}

/// Reads all of a page that is visible.
pub(crate) fn read(document: &Document, sheet: &Sheet) -> Page {
    let mut walk = Walk {
        sheet,
        page: Page::default(),
        open: None,
        lists: Vec::new(),
        mark: String::new(),
        tables: 0,
        cells: 0,
    };
    let mut context = Context::default();
    let mut open: Vec<(NodeRef<'_>, Context)> = Vec::new();
    let mut next = Some(document.root());
    loop {
        let Some(node) = next else {
            let Some((node, outer)) = open.pop() else {
                walk.flush();
                return walk.page;
            };
            walk.leave(&context);
            context = outer;
            next = node.next_sibling();
            continue;
        };
        match walk.enter(&node, context) {
            Some(inner) if node.may_have_children() => {
                open.push((node, context));
                context = inner;
                next = node.first_child();
            }
            _ => next = node.next_sibling(),
        }
    }
}

impl Page {
    /// How many characters there are, the title aside.
    fn chars(&self) -> usize {
        let units = self.units.iter().filter(|unit| unit.shape != Shape::Title);
        units.map(|unit| unit.text.chars().filter(|c| !c.is_whitespace()).count()).sum()
    }
}

/// What is known of the elements around a node.
#[derive(Debug, Clone, Copy)]
struct Context {
    role: Role,
    heading: Option<u8>,
    is_title: bool,
    is_linked: bool,
    surroundings: Option<usize>,
    is_preformatted: bool,
    /// How words are seen here.
    place: Place,
    /// The table whose row is open.
    row: Option<usize>,
    /// The table that is open, where it holds data.
    table: Option<usize>,
    lists: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            role: Role::Block,
            heading: None,
            is_title: false,
            is_linked: false,
            surroundings: None,
            is_preformatted: false,
            place: Place::default(),
            row: None,
            table: None,
            lists: 0,
        }
    }
}

impl Context {
    /// Whether blocks do not begin lines here.
    const fn is_flat(&self) -> bool {
        self.row.is_some() || self.heading.is_some() || self.is_title
    }
}

#[derive(Debug)]
struct Walk<'a> {
    sheet: &'a Sheet,
    page: Page,
    open: Option<Unit>,
    /// The next number of each open list; none where it has marks without numbers.
    lists: Vec<Option<i64>>,
    /// The mark of the item that begins.
    mark: String,
    tables: usize,
    cells: usize,
}

impl Walk<'_> {
    /// Takes a node in; answers what is known inside of it, if that is to be read.
    fn enter(&mut self, node: &NodeRef<'_>, context: Context) -> Option<Context> {
        if node.is_text() {
            self.write(node, &context);
            return None;
        }
        let Some(name) = node.qual_name_ref().map(|name| name.local.to_string()) else {
            // The document itself; of comments and declarations nothing is read.
            return (node.is_document() || node.is_fragment()).then_some(context);
        };
        let place = look(node, &name, self.sheet, &context.place);
        let role = role(node, &name, place.is_none());
        let mut inner = Context { role, place: place.unwrap_or(context.place), ..context };
        if is_surrounding(node, &name) {
            self.page.surroundings.push(context.surroundings);
            inner.surroundings = Some(self.page.surroundings.len() - 1);
        }
        inner.is_linked |= name == "a";
        self.begin(node, &mut inner, &context)?;
        Some(inner)
    }

    fn begin(&mut self, node: &NodeRef<'_>, inner: &mut Context, outer: &Context) -> Option<()> {
        match inner.role {
            Role::Hidden => return None,
            Role::Inline => {}
            Role::Apart => self.part(),
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
            _ if outer.is_flat() => self.part(),
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
                inner.table = (self.tables <= MAX_TABLES && holds_data(node)).then_some(self.tables);
            }
            Role::Row | Role::Cell | Role::Block => self.flush(),
        }
        Some(())
    }

    /// Ends an element.
    fn leave(&mut self, inner: &Context) {
        match inner.role {
            Role::Hidden | Role::Inline | Role::Break => {}
            Role::Apart => self.part(),
            Role::Title | Role::Heading(_) | Role::Row if inner.role_is_open() => self.flush(),
            _ if inner.is_flat() => self.part(),
            Role::List { .. } => {
                self.flush();
                self.lists.truncate(inner.lists.saturating_sub(1));
            }
            Role::Item => {
                self.flush();
                self.mark.clear();
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
        let own = node.attr("value").and_then(|value| value.trim().parse().ok());
        self.mark = match self.lists.last_mut() {
            Some(Some(next)) => {
                let number: i64 = own.unwrap_or(*next);
                *next = number.saturating_add(1);
                format!("{number}.")
            }
            _ => "-".to_owned(),
        };
    }

    fn begin_cell(&mut self, node: &NodeRef<'_>, inner: &Context) {
        if self.cells > 0 {
            let unit = self.unit(inner);
            let text = if unit.text.ends_with(' ') { BETWEEN_CELLS.trim_start() } else { BETWEEN_CELLS };
            unit.push(text, node.id, false);
        }
        self.cells += 1;
    }

    /// Parts what comes from what came, in the same line.
    fn part(&mut self) {
        if let Some(unit) = &mut self.open
            && !unit.text.is_empty()
            && !unit.text.ends_with(char::is_whitespace)
            && let Some(last) = unit.spans.last_mut()
        {
            unit.text.push(' ');
            last.end += 1;
        }
    }

    /// Ends a line; two ends end a paragraph.
    fn break_line(&mut self, node: &NodeRef<'_>, context: &Context) {
        if context.is_flat() {
            return self.part();
        }
        let Some(unit) = &mut self.open else {
            return;
        };
        if unit.text.ends_with('\n') && unit.shape == Shape::Paragraph {
            return self.flush();
        }
        unit.push("\n", node.id, context.is_linked);
    }

    fn write(&mut self, node: &NodeRef<'_>, context: &Context) {
        if !context.is_title && !context.place.shows() {
            return;
        }
        let (id, is_linked) = (node.id, context.is_linked);
        node.query(|data| {
            let dom_query::NodeData::Text { contents } = &data.data else {
                return;
            };
            let is_blank = contents.chars().all(|c| c.is_ascii_whitespace());
            if is_blank && self.open.is_none() && !context.is_preformatted {
                return;
            }
            let unit = self.unit(context);
            if unit.shape == Shape::Code {
                unit.push(contents, id, is_linked);
            } else {
                unit.push_words(contents, id, is_linked);
            }
        });
    }

    /// The unit that is open, else a new one.
    fn unit(&mut self, context: &Context) -> &mut Unit {
        let mark = &mut self.mark;
        self.open.get_or_insert_with(|| {
            let shape = match context {
                Context { is_title: true, .. } => Shape::Title,
                Context { row: Some(table), .. } => Shape::Row(*table),
                Context { heading: Some(level), .. } => Shape::Heading(*level),
                Context { is_preformatted: true, .. } => Shape::Code,
                Context { lists: 0, .. } => Shape::Paragraph,
                Context { lists, .. } => Shape::Listed { depth: *lists - 1, mark: std::mem::take(mark) },
            };
            Unit::new(shape, context.surroundings)
        })
    }

    fn flush(&mut self) {
        self.page.units.extend(self.open.take().filter(|unit| !unit.is_blank()));
    }
}

impl Context {
    /// Whether the element itself, not one around it, made the place flat.
    const fn role_is_open(&self) -> bool {
        match self.role {
            Role::Heading(_) => self.row.is_none(),
            Role::Row => self.row.is_some(),
            _ => true,
        }
    }
}
