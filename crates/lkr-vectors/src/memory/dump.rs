//! The snapshot file of the memory store: one JSON document.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use lkr_domain::{PointId, SparseVector};
use serde::{Deserialize, Serialize};

use super::{MemoryVectorsState, collection::MemoryCollection};
use crate::{Collection, CollectionSpec, Point, PointOrigin, Tags};

const FILE: &str = "vectors.json";
const VERSION: u32 = 1;

/// The stored form of the store.
#[derive(Serialize, Deserialize)]
struct Dump {
    version: u32,
    collections: Vec<(CollectionSpec, Vec<PointDump>)>,
    aliases: Vec<(Collection, Collection)>,
}

/// The stored form of a point.
#[derive(Serialize, Deserialize)]
struct PointDump {
    id: PointId,
    origin: PointOrigin,
    tags: Tags,
    dense: Option<Vec<f32>>,
    sparse: SparseVector,
    payload: serde_json::Value,
}

/// Writes the file into the new folder `to`. The file gets its final name last, so an incomplete snapshot is never read.
pub(super) fn write(state: &MemoryVectorsState, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let partial = to.join("vectors.partial");
    let mut writer = BufWriter::new(File::create_new(&partial)?);
    serde_json::to_writer(&mut writer, &Dump::from(state))?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    fs::rename(partial, to.join(FILE))?;
    File::open(to)?.sync_all()
}

pub(super) fn read(folder: &Path) -> io::Result<MemoryVectorsState> {
    let text = fs::read(folder.join(FILE))?;
    let dump: Dump =
        serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    if dump.version != VERSION {
        let message = format!("unsupported version {} of {FILE}; expected {VERSION}", dump.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut state = MemoryVectorsState::default();
    for (spec, points) in dump.collections {
        let name = spec.collection.clone();
        let mut collection = MemoryCollection::new(spec);
        points.into_iter().for_each(|point| collection.put(point.into()));
        state.collections.insert(name, collection);
    }
    state.aliases.extend(dump.aliases);
    Ok(state)
}

impl From<&MemoryVectorsState> for Dump {
    fn from(state: &MemoryVectorsState) -> Self {
        Self {
            version: VERSION,
            collections: state
                .collections
                .values()
                .map(|collection| {
                    (collection.spec().clone(), collection.points().map(PointDump::from).collect())
                })
                .collect(),
            aliases: state.aliases.iter().map(|(alias, target)| (alias.clone(), target.clone())).collect(),
        }
    }
}

impl From<&Point> for PointDump {
    fn from(point: &Point) -> Self {
        let Point { id, origin, tags, dense, sparse, payload } = point.clone();
        Self { id, origin, tags, dense, sparse, payload }
    }
}

impl From<PointDump> for Point {
    fn from(point: PointDump) -> Self {
        let PointDump { id, origin, tags, dense, sparse, payload } = point;
        Self { id, origin, tags, dense, sparse, payload }
    }
}
