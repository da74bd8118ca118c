//! Listings of the service, page by page.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    commands::query::QueryString,
    http::Client,
    terminal::{Column, Output, Style, Table, field},
};

/// The items of one request.
const PAGE: usize = 100;

/// Rows of a table that are printed together. Widths are those of a page.
const SHOWN_TOGETHER: usize = 1_000;

/// How a listing is shown.
pub(crate) struct List<'a> {
    /// The field of an item that names it.
    pub(crate) name: &'static str,
    pub(crate) columns: &'a [Column],
    /// The cells of an item, one for each column.
    pub(crate) row: fn(&Value) -> Vec<String>,
}

impl List<'_> {
    /// Prints the items of a listing, at most `limit` if one is given, and returns their number.
    pub(crate) fn print(
        &self,
        client: &Client,
        output: &Output,
        path: &str,
        query: &QueryString,
        limit: Option<usize>,
    ) -> Result<usize> {
        let mut table = Table::new(self.columns);
        let (mut count, mut in_table) = (0, 0);
        each_item(client, path, query, limit, &mut |item| {
            count += 1;
            match output.style {
                Style::Json => return output.json(&item),
                Style::Names => return output.line(&field(&item, self.name)),
                Style::People => table.row(&(self.row)(&item)),
            }
            in_table += 1;
            if in_table == SHOWN_TOGETHER {
                in_table = 0;
                table.print(output)?;
            }
            Ok(())
        })?;
        if !table.is_empty() {
            table.print(output)?;
        }
        if count == 0 {
            output.note("none")?;
        }
        Ok(count)
    }
}

/// Calls `take` with each item of a listing, at most `limit` if one is given.
pub(crate) fn each_item(
    client: &Client,
    path: &str,
    query: &QueryString,
    limit: Option<usize>,
    take: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    let (mut left, mut offset) = (limit.unwrap_or(usize::MAX), None);
    while left > 0 {
        let page =
            query.clone().with("limit", left.min(PAGE).to_string()).with_some("offset", offset.clone());
        let mut data = client.get(&format!("{path}{page}"))?.data;
        let items = data.get_mut("items").map(Value::take);
        let items: Vec<Value> = serde_json::from_value(items.context("the response has no items")?)?;
        left = left.saturating_sub(items.len());
        items.into_iter().try_for_each(&mut *take)?;
        offset = data.get("next_offset").and_then(Value::as_str).map(str::to_owned);
        if offset.is_none() {
            return Ok(());
        }
    }
    Ok(())
}
