//! The query parameters of listings of the OpenAI API.

use lkr::ListOrder;

use crate::{
    error::ApiError,
    http::QueryParams,
    wire::openai::page::{PageRequest, PageStart},
};

/// Takes the parameters of a listing. `parse` reads the id of an object.
pub(super) fn requested_page<K>(
    query: &mut QueryParams,
    parse: impl Fn(String) -> Option<K>,
) -> Result<PageRequest<K>, ApiError> {
    let limit = query.limit()? as usize;
    let order = query.parsed("order", "asc or desc", |text| match text {
        "asc" => Some(ListOrder::OldestFirst),
        "desc" => Some(ListOrder::NewestFirst),
        _ => None,
    })?;
    let mut cursor = |name: &str| query.parsed(name, "the id of an object", |text| parse(text.to_owned()));
    let start = match (cursor("after")?, cursor("before")?) {
        (None, None) => PageStart::First,
        (Some(after), None) => PageStart::After(after),
        (None, Some(before)) => PageStart::Before(before),
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid_parameter("before", "it cannot stand beside after"));
        }
    };
    Ok(PageRequest { limit, order: order.unwrap_or_default(), start })
}
