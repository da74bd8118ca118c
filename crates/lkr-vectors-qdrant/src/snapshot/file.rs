//! The files of a snapshot: one with the points of each collection, and the manifest, which is written last.
//!
//! A record is its length, its CRC-32C, and a point in Qdrant's form; the numbers have four bytes, least significant
//! first.

use std::{
    io::{self, BufReader, Read},
    path::Path,
};

use lkr_vectors::{Collection, CollectionSpec};
use prost::Message as _;
use qdrant_client::qdrant::PointStruct;
use serde::{Deserialize, Serialize};
use tokio::{
    fs::{self, File},
    io::AsyncWriteExt as _,
};

use crate::error::{Failure, InternalResult};

const MANIFEST: &str = "manifest.json";
const VERSION: u32 = 1;

/// No record is longer; a longer length is damage.
const MAX_RECORD_BYTES: u32 = 1 << 30;

/// What a snapshot contains.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u32,
    pub(super) collections: Vec<CollectionEntry>,
    /// Each alias with its collection.
    pub(super) aliases: Vec<(Collection, Collection)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CollectionEntry {
    pub(super) spec: CollectionSpec,
    /// The number of points in the file.
    pub(super) points: u64,
}

impl Manifest {
    pub(super) fn new(collections: Vec<CollectionSpec>, aliases: Vec<(Collection, Collection)>) -> Self {
        let collections = collections.into_iter().map(|spec| CollectionEntry { spec, points: 0 }).collect();
        Self { version: VERSION, collections, aliases }
    }

    pub(super) fn specs(&self) -> impl Iterator<Item = &CollectionSpec> {
        self.collections.iter().map(|entry| &entry.spec)
    }

    pub(super) fn set_points(&mut self, at: usize, points: u64) {
        if let Some(entry) = self.collections.get_mut(at) {
            entry.points = points;
        }
    }

    pub(super) async fn write(&self, folder: &Path) -> InternalResult<()> {
        let json = serde_json::to_vec_pretty(self).map_err(|error| Failure::internal(error.to_string()))?;
        let mut file = File::create_new(folder.join(MANIFEST)).await?;
        file.write_all(&json).await?;
        file.sync_all().await?;
        Ok(File::open(folder).await?.sync_all().await?)
    }

    pub(super) async fn read(folder: &Path) -> InternalResult<Self> {
        let path = folder.join(MANIFEST);
        let json = fs::read(&path).await?;
        let damaged = |reason: String| Failure::corrupt(format!("{}: {reason}", path.display()));
        let manifest: Self = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
        if manifest.version != VERSION {
            return Err(damaged(format!("unsupported version {}; expected {VERSION}", manifest.version)));
        }
        Ok(manifest)
    }
}

/// The file with the points of a collection, while it is written.
#[derive(Debug)]
pub(crate) struct PointsFile {
    file: File,
    points: u64,
}

impl PointsFile {
    pub(super) async fn create(folder: &Path, at: usize) -> InternalResult<Self> {
        Ok(Self { file: File::create_new(folder.join(file_name(at))).await?, points: 0 })
    }

    pub(super) async fn append(&mut self, points: &[PointStruct]) -> InternalResult<()> {
        let mut bytes = Vec::new();
        for point in points {
            let record = point.encode_to_vec();
            let length =
                u32::try_from(record.len()).map_err(|_| Failure::internal("a point is larger than 4 GiB"))?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&crc_fast::crc32_iscsi(&record).to_le_bytes());
            bytes.extend_from_slice(&record);
        }
        self.file.write_all(&bytes).await?;
        self.points += points.len() as u64;
        Ok(())
    }

    pub(super) async fn finish(&mut self) -> InternalResult<u64> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        Ok(self.points)
    }
}

/// Reads the points of a collection. It blocks.
#[derive(Debug)]
pub(super) struct PointsReader {
    file: BufReader<std::fs::File>,
    name: String,
    remaining: u64,
}

impl PointsReader {
    pub(super) fn open(folder: &Path, at: usize, points: u64) -> InternalResult<Self> {
        let path = folder.join(file_name(at));
        let file = BufReader::new(std::fs::File::open(&path)?);
        Ok(Self { file, name: path.display().to_string(), remaining: points })
    }

    /// At most `count` points and about `max_bytes`; empty at the end.
    pub(super) fn read(&mut self, count: usize, max_bytes: usize) -> InternalResult<Vec<PointStruct>> {
        let (mut points, mut bytes) = (Vec::new(), 0);
        while self.remaining > 0 && points.len() < count && bytes < max_bytes {
            let record = self.read_record()?;
            bytes += record.len();
            let point = PointStruct::decode(record.as_slice()).map_err(|error| self.damaged(error))?;
            points.push(point);
            self.remaining -= 1;
        }
        Ok(points)
    }

    fn read_record(&mut self) -> InternalResult<Vec<u8>> {
        let (length, checksum) = (self.read_number()?, self.read_number()?);
        if length > MAX_RECORD_BYTES {
            return Err(self.damaged("a record is too long"));
        }
        // Not more is reserved than the file has.
        let mut record = Vec::new();
        self.file.by_ref().take(length.into()).read_to_end(&mut record)?;
        if record.len() != length as usize || crc_fast::crc32_iscsi(&record) != checksum {
            return Err(self.damaged("a record does not match its checksum"));
        }
        Ok(record)
    }

    fn read_number(&mut self) -> InternalResult<u32> {
        let mut bytes = [0; 4];
        match self.file.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("the file is cut off"))
            }
            result => Ok(result.map(|()| u32::from_le_bytes(bytes))?),
        }
    }

    fn damaged(&self, reason: impl std::fmt::Display) -> Failure {
        Failure::corrupt(format!("{}: {reason}", self.name))
    }
}

fn file_name(at: usize) -> String {
    format!("points-{at}")
}
