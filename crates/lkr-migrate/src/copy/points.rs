use std::sync::Arc;

use lkr_domain::Layer;
use lkr_vectors::{Collection, Filter, Include, Page, ScrollCursor, VectorStore};

use crate::{
    MigrateOptions, Result,
    marker::{Marker, PointsDone, Step},
    progress::{Meter, Phase, ProgressSink},
    retry::retried,
};

/// Copies all collections in the order of their names, from the marker's place on, and then the aliases.
pub(crate) async fn copy(
    source: &Arc<dyn VectorStore>,
    target: &Arc<dyn VectorStore>,
    marker: &mut Marker<'_>,
    options: &MigrateOptions,
    sink: ProgressSink<'_>,
) -> Result<()> {
    let mut place = match marker.step() {
        Step::Points(place) => place.clone(),
        _ => PointsDone::default(),
    };
    let total = marker.fingerprint().points.values().sum();
    let meter = Meter::begin(sink, Phase::Points, Some(total), place.done);
    for spec in retried(options.retry_for, "read source collections", || source.collections()).await? {
        let name = &spec.collection;
        if place.collection.as_ref().is_some_and(|current| name < current) {
            continue;
        }
        if place.collection.as_ref() != Some(name) {
            place = PointsDone { collection: Some(name.clone()), cursor: None, done: place.done };
        }
        retried(options.retry_for, "create target collections", || target.ensure(&spec)).await?;
        copy_collection(source, target, &mut place, marker, options, &meter).await?;
    }
    let aliases = aliases(&**source, options, "read source aliases").await?;
    retried(options.retry_for, "switch target aliases", || target.switch(&aliases)).await
}

/// Copies the points of the collection of `place`. The next page is read while one is written.
async fn copy_collection(
    source: &Arc<dyn VectorStore>,
    target: &Arc<dyn VectorStore>,
    place: &mut PointsDone,
    marker: &mut Marker<'_>,
    options: &MigrateOptions,
    meter: &Meter<'_>,
) -> Result<()> {
    let Some(collection) = place.collection.clone() else { return Ok(()) };
    let mut page = Some(page(source, &collection, place.cursor.clone(), options).await?);
    while let Some(Page { points, next }) = page.take() {
        let (copied, cursor) = (points.len() as u64, next.map(|cursor| cursor.0));
        let write = retried(options.retry_for, "write target points", || {
            let points = points.clone();
            target.upsert(&collection, points)
        });
        let read = async {
            match &cursor {
                Some(cursor) => {
                    self::page(source, &collection, Some(cursor.clone()), options).await.map(Some)
                }
                None => Ok(None),
            }
        };
        let ((), following) = tokio::try_join!(write, read)?;
        page = following;
        place.done += copied;
        // A collection that is complete is named with no cursor only when the next one begins, so its last page may be
        // copied twice.
        if cursor.is_some() {
            place.cursor = cursor;
            marker.advance(Step::Points(place.clone()), Vec::new()).await?;
        }
        meter.add(copied, 0);
    }
    Ok(())
}

async fn page(
    source: &Arc<dyn VectorStore>,
    collection: &Collection,
    cursor: Option<Vec<u8>>,
    options: &MigrateOptions,
) -> Result<Page> {
    let (cursor, all) = (cursor.map(ScrollCursor), Filter::all());
    retried(options.retry_for, "read source points", || {
        source.scroll(collection, &all, cursor.as_ref(), options.points_per_batch, Include::All)
    })
    .await
}

/// The aliases of the layers, each with its collection. lkr has no others.
pub(crate) async fn aliases(
    vectors: &dyn VectorStore,
    options: &MigrateOptions,
    operation: &'static str,
) -> Result<Vec<(Collection, Collection)>> {
    let mut aliases = Vec::new();
    for layer in Layer::ALL {
        aliases.extend(retried(options.retry_for, operation, || alias(vectors, layer)).await?);
    }
    Ok(aliases)
}

/// The alias of a layer with its collection, if the layer has an alias.
///
/// # Errors
/// Those of the store.
pub async fn alias(
    vectors: &dyn VectorStore,
    layer: Layer,
) -> lkr_vectors::Result<Option<(Collection, Collection)>> {
    let alias = Collection::from(layer);
    let spec = vectors.describe(&alias).await?;
    Ok(spec.map(|spec| (alias, spec.collection)).filter(|(alias, name)| alias != name))
}
