//! Reading points for display.

use lkr_domain::{Layer, PointId};
use lkr_vectors::{Collection, Include, Point, Result, VectorStore};

/// The points with their payloads alone, in the order of `ids`; `None` for points that are gone.
pub(crate) async fn read(
    vectors: &dyn VectorStore,
    layer: Layer,
    ids: Vec<PointId>,
) -> Result<Vec<Option<Point>>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    vectors.get(&Collection::from(layer), &ids, Include::Content).await
}
