use dom_query::NodeRef;

/// A table with more text in a cell lays a page out.
const MAX_CELL_CHARS: usize = 2_000;

/// Whether a table holds data, rather than laying out a page.
pub(crate) fn holds_data(table: &NodeRef<'_>) -> bool {
    if table.attr("role").is_some_and(|role| matches!(&*role, "presentation" | "none")) {
        return false;
    }
    let (mut cells, mut rows) = (0_usize, 0_usize);
    for node in table.descendants_it() {
        let Some(name) = node.qual_name_ref() else {
            continue;
        };
        match &*name.local {
            "table" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "article" | "section" | "form" | "pre" => {
                return false;
            }
            "tr" => rows += 1,
            "td" | "th" => {
                cells += 1;
                if node.normalized_char_count() > MAX_CELL_CHARS {
                    return false;
                }
            }
            _ => {}
        }
    }
    cells > rows.max(1)
}
