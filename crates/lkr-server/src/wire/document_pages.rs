use std::ops::Range;

use lkr::files::PlacedText;
use serde::Serialize;
use utoipa::ToSchema;

/// Where a text is on a page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageBoxes {
    /// The width of the page as its image shows it, in points.
    width: f32,
    /// The height of the page as its image shows it, in points.
    height: f32,
    /// One box for each line: its left, upper, right and lower edge, in points from the upper left corner of the image. Empty if
    /// the text is not on the page.
    #[schema(value_type = Vec<Vec<f32>>, inline)]
    boxes: Vec<[f32; 4]>,
}

impl PageBoxes {
    /// The boxes of a range of the document's extracted text.
    pub(crate) fn new(places: &PlacedText, range: Range<u32>) -> Self {
        Self { width: places.width, height: places.height, boxes: places.boxes(range) }
    }
}
