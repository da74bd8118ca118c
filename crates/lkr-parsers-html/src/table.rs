use dom_query::{NodeData, NodeRef, TreeNode};

/// A table with more text in one cell is a layout table.
const MAX_CELL_CHARS: usize = 2_000;

/// Whether a table holds data, rather than laying out a page.
pub(crate) fn is_data_table(table: &NodeRef<'_>) -> bool {
    if table.attr("role").is_some_and(|role| matches!(&*role, "presentation" | "none")) {
        return false;
    }
    let (mut cells, mut rows, mut chars) = (0_usize, 0_usize, 0_usize);
    for node in table.descendants_it() {
        if node.is_text() {
            // A text belongs to the cell that began last.
            chars += length(&node);
            if cells > 0 && chars > MAX_CELL_CHARS {
                return false;
            }
        }
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
                chars = 0;
            }
            _ => {}
        }
    }
    cells > rows.max(1)
}

/// How many characters a text has, each run of white space counted as one.
fn length(node: &NodeRef<'_>) -> usize {
    let of_words = |text: &str| text.split_whitespace().map(|word| word.chars().count() + 1).sum();
    let length = |data: &TreeNode| match &data.data {
        NodeData::Text { contents } => of_words(contents),
        _ => 0,
    };
    node.query(length).unwrap_or_default()
}
