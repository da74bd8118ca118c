//! The file that a snapshot of the memory store is: JSON, read whole.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use lkr_domain::{PointId, SparseVector};
use serde::{Deserialize, Serialize};

use super::{Inner, collection::Stored};
use crate::{Collection, CollectionSpec, Point, PointOrigin, Tags};

const FILE: &str = "vectors.json";
const VERSION: u32 = 1;

/// The stored form of everything.
#[derive(Serialize, Deserialize)]
struct Dump {
    version: u32,
    collections: Vec<(CollectionSpec, Vec<DumpedPoint>)>,
    aliases: Vec<(Collection, Collection)>,
}

/// The stored form of a point.
#[derive(Serialize, Deserialize)]
struct DumpedPoint {
    id: PointId,
    origin: PointOrigin,
    tags: Tags,
    dense: Option<Vec<f32>>,
    sparse: SparseVector,
    payload: serde_json::Value,
}

/// Writes the file into the new folder `to`. A folder without the file's final name holds no snapshot.
pub(super) fn write(inner: &Inner, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let partial = to.join("vectors.partial");
    let mut writer = BufWriter::new(File::create_new(&partial)?);
    serde_json::to_writer(&mut writer, &Dump::from(inner))?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    fs::rename(partial, to.join(FILE))?;
    File::open(to)?.sync_all()
}

pub(super) fn read(folder: &Path) -> io::Result<Inner> {
    let text = fs::read(folder.join(FILE))?;
    let dump: Dump =
        serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    if dump.version != VERSION {
        let message = format!("version {} of {FILE}, of which {VERSION} can be read", dump.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut inner = Inner::default();
    for (spec, points) in dump.collections {
        let name = spec.collection.clone();
        let mut stored = Stored::new(spec);
        points.into_iter().for_each(|point| stored.put(point.into()));
        inner.collections.insert(name, stored);
    }
    inner.aliases.extend(dump.aliases);
    Ok(inner)
}

impl From<&Inner> for Dump {
    fn from(inner: &Inner) -> Self {
        let collections = inner.collections.values();
        Self {
            version: VERSION,
            collections: collections
                .map(|stored| (stored.spec().clone(), stored.points().map(DumpedPoint::from).collect()))
                .collect(),
            aliases: inner.aliases.iter().map(|(alias, own)| (alias.clone(), own.clone())).collect(),
        }
    }
}

impl From<&Point> for DumpedPoint {
    fn from(point: &Point) -> Self {
        let Point { id, origin, tags, dense, sparse, payload } = point.clone();
        Self { id, origin, tags, dense, sparse, payload }
    }
}

impl From<DumpedPoint> for Point {
    fn from(point: DumpedPoint) -> Self {
        let DumpedPoint { id, origin, tags, dense, sparse, payload } = point;
        Self { id, origin, tags, dense, sparse, payload }
    }
}
