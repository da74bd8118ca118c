//! The environment of clusters, with one row for each collection's.

use std::{
    ops::Bound,
    path::{Path, PathBuf},
};

use heed::{RoTxn, RwTxn};

use super::row_key;
use crate::{
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    env::{Environment, Map, Table, create_tables, open_env},
    error::InternalResult,
    vectors::QuantisedRow,
};

/// The largest block in bytes. A point is added by writing the last block of its cluster again.
const BLOCK_BYTES: usize = 32 << 10;

/// The clusters of all collections.
#[derive(Debug)]
pub(crate) struct ClusterEnv {
    pub(crate) env: Environment,
    /// Collection → [`ClusterRow`].
    rows: Table,
    /// Number of clusters → their centroids.
    centroids: Table,
    /// Number of clusters, cluster and block → points.
    blocks: Table,
    pub(crate) path: PathBuf,
}

impl ClusterEnv {
    pub(crate) fn open(path: &Path, map: Map) -> InternalResult<Self> {
        let env = open_env(path, map, 3)?;
        let [rows, centroids, blocks] = create_tables(&env, ["rows", "centroids", "blocks"])?;
        Ok(Self { env, rows, centroids, blocks, path: path.to_owned() })
    }

    pub(crate) fn row(&self, txn: &RoTxn, collection: u16) -> InternalResult<Option<ClusterRow>> {
        let checksummed = self.rows.get(txn, &row_key(collection))?;
        checksummed.map(|checksummed| ClusterRow::decode(collection, checksummed)).transpose()
    }

    pub(crate) fn put_row(&self, txn: &mut RwTxn, collection: u16, row: &ClusterRow) -> InternalResult<()> {
        Ok(self.rows.put(txn, &row_key(collection), &with_checksum(&row.encode()))?)
    }

    pub(crate) fn delete_row(&self, txn: &mut RwTxn, collection: u16) -> InternalResult<()> {
        self.rows.delete(txn, &row_key(collection))?;
        Ok(())
    }

    pub(crate) fn all_rows(&self, txn: &RoTxn) -> InternalResult<Vec<(u16, ClusterRow)>> {
        let mut rows = Vec::new();
        for row in self.rows.iter(txn)? {
            let (key, checksummed) = row?;
            let collection = key.try_into().map(u16::from_be_bytes);
            let collection = collection.map_err(|_| damaged(|| "a row of the clusters".to_owned()))?;
            rows.push((collection, ClusterRow::decode(collection, checksummed)?));
        }
        Ok(rows)
    }

    /// The centroids, whose ids are the numbers of their clusters. The checksum of many centroids takes longer than a query should,
    /// and results are rated by the vectors in `kb`.
    pub(crate) fn centroids<'t>(
        &self,
        txn: &'t RoTxn,
        info: &ClusterInfo,
        dims: usize,
    ) -> InternalResult<impl Iterator<Item = QuantisedRow<'t>>> {
        let bytes = self.centroids.get(txn, &info.number.to_be_bytes())?;
        bytes.and_then(|bytes| QuantisedRow::all(bytes, dims)).ok_or_else(|| damaged_part(info))
    }

    /// Replaces the centroids by encoded rows.
    pub(crate) fn put_centroids(
        &self,
        txn: &mut RwTxn,
        info: &ClusterInfo,
        rows: &[u8],
    ) -> InternalResult<()> {
        Ok(self.centroids.put(txn, &info.number.to_be_bytes(), rows)?)
    }

    /// The points of a cluster, block by block.
    pub(crate) fn blocks<'t>(
        &self,
        txn: &'t RoTxn,
        info: &'t ClusterInfo,
        cluster: u32,
        dims: usize,
    ) -> InternalResult<impl Iterator<Item = InternalResult<impl Iterator<Item = QuantisedRow<'t>>>>> {
        let blocks = self.blocks.prefix_iter(txn, &cluster_key(info, cluster))?;
        Ok(blocks.map(move |block| {
            let (_, bytes) = block?;
            QuantisedRow::all(bytes, dims).ok_or_else(|| damaged_part(info))
        }))
    }

    /// Adds points, encoded as rows of `row_bytes`, to a cluster.
    pub(crate) fn add(
        &self,
        txn: &mut RwTxn,
        info: &ClusterInfo,
        (cluster, rows): (u32, &[u8]),
        row_bytes: usize,
    ) -> InternalResult<()> {
        let largest = (BLOCK_BYTES / row_bytes).max(1) * row_bytes;
        let last = self.blocks.get_lower_than_or_equal_to(txn, &block_key(info, cluster, u32::MAX))?;
        let last = last.and_then(|(key, bytes)| {
            let block = key.strip_prefix(&cluster_key(info, cluster)[..])?.try_into().ok()?;
            Some((u32::from_be_bytes(block), bytes))
        });
        let (mut block, present) = match last {
            Some((block, bytes)) if bytes.len() < largest => (block, bytes),
            Some((block, _)) => (block + 1, &[][..]),
            None => (0, &[][..]),
        };
        let rows = [present, rows].concat();
        for part in rows.chunks(largest) {
            self.blocks.put(txn, &block_key(info, cluster, block), part)?;
            block += 1;
        }
        Ok(())
    }

    /// Removes clusters with their centroids.
    pub(crate) fn clear(&self, txn: &mut RwTxn, info: &ClusterInfo) -> InternalResult<()> {
        self.centroids.delete(txn, &info.number.to_be_bytes())?;
        let (first, last) = (block_key(info, 0, 0), block_key(info, u32::MAX, u32::MAX));
        let all = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        self.blocks.delete_range(txn, &all)?;
        Ok(())
    }
}

fn cluster_key(info: &ClusterInfo, cluster: u32) -> [u8; 6] {
    let [a, b] = info.number.to_be_bytes();
    let [c, d, e, f] = cluster.to_be_bytes();
    [a, b, c, d, e, f]
}

fn block_key(info: &ClusterInfo, cluster: u32, block: u32) -> [u8; 10] {
    let mut key = [0; 10];
    let (front, back) = key.split_at_mut(6);
    front.copy_from_slice(&cluster_key(info, cluster));
    back.copy_from_slice(&block.to_be_bytes());
    key
}

fn damaged_part(info: &ClusterInfo) -> crate::error::Failure {
    damaged(|| format!("a part of the clusters number {}", info.number))
}

/// The clusters of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterRow {
    /// Those that searches use.
    pub(crate) current: ClusterInfo,
    /// The replacement that is being built.
    pub(crate) next: Option<ClusterInfo>,
}

/// What is known of the clusters that one set of centroids makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterInfo {
    /// Their number in the environment.
    pub(crate) number: u16,
    /// All points below this id that existed at the time were added.
    pub(crate) watermark: u32,
    /// The number of points that were added.
    pub(crate) items: u32,
    /// The number of points that the collection had when the centroids were made; 0 without centroids.
    pub(crate) trained: u32,
}

impl ClusterInfo {
    pub(crate) const fn empty(number: u16) -> Self {
        Self { number, watermark: 0, items: 0, trained: 0 }
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        for value in [self.watermark, self.items, self.trained] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    fn decode(fields: &mut FieldReader) -> Option<Self> {
        let (number, watermark) = (fields.u16()?, fields.u32()?);
        Some(Self { number, watermark, items: fields.u32()?, trained: fields.u32()? })
    }
}

impl ClusterRow {
    /// What it has, the replacement last.
    pub(crate) fn all(&self) -> impl Iterator<Item = ClusterInfo> {
        [Some(self.current), self.next].into_iter().flatten()
    }

    fn encode(self) -> Vec<u8> {
        self.all().flat_map(ClusterInfo::encode).collect()
    }

    fn decode(collection: u16, checksummed: &[u8]) -> InternalResult<Self> {
        let name = || format!("the row of the clusters of collection number {collection}");
        let mut fields = FieldReader(strip_checksum(checksummed, name)?);
        let current = ClusterInfo::decode(&mut fields).ok_or_else(|| damaged(name))?;
        Ok(Self { current, next: ClusterInfo::decode(&mut fields) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::Quantised;

    const DIMS: usize = 100;

    fn rows(ids: std::ops::Range<u32>) -> Vec<u8> {
        let mut rows = Vec::new();
        for id in ids {
            let quantised = Quantised::of(&[id as f32 + 1.0; DIMS]).unwrap();
            quantised.row(id).encode(&mut rows);
        }
        rows
    }

    #[test]
    fn cluster_has_its_points_in_blocks_of_bounded_size() {
        let folder = tempfile::tempdir().unwrap();
        let env = ClusterEnv::open(folder.path(), Map::default()).unwrap();
        let (info, other) = (ClusterInfo::empty(3), ClusterInfo::empty(4));
        let row_bytes = QuantisedRow::bytes(DIMS);
        let mut txn = env.env.write_txn().unwrap();
        for (ids, cluster, info) in
            [(0..7, 1, &info), (7..9, 1, &info), (9..900, 1, &info), (900..901, 2, &info), (0..5, 1, &other)]
        {
            env.add(&mut txn, info, (cluster, &rows(ids)), row_bytes).unwrap();
        }
        let of = |txn: &RoTxn, info: &ClusterInfo, cluster| -> Vec<Vec<u32>> {
            let blocks = env.blocks(txn, info, cluster, DIMS).unwrap();
            blocks.map(|block| block.unwrap().map(|row| row.id).collect()).collect()
        };
        let blocks = of(&txn, &info, 1);
        assert_eq!(blocks.concat(), (0..900).collect::<Vec<u32>>());
        let largest = BLOCK_BYTES / row_bytes;
        assert_eq!(
            blocks.iter().map(Vec::len).collect::<Vec<_>>(),
            [largest, largest, largest, 900 - 3 * largest]
        );
        assert_eq!(of(&txn, &info, 2), [[900]]);
        assert!(of(&txn, &info, 3).is_empty());
        env.clear(&mut txn, &info).unwrap();
        assert!(of(&txn, &info, 1).is_empty() && of(&txn, &info, 2).is_empty());
        assert_eq!(of(&txn, &other, 1).concat(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn row_is_decoded_as_it_was_encoded() {
        let current = ClusterInfo { number: 7, watermark: 90_000, items: 80_000, trained: 60_001 };
        for next in [None, Some(ClusterInfo::empty(8))] {
            let row = ClusterRow { current, next };
            assert_eq!(ClusterRow::decode(1, &with_checksum(&row.encode())).unwrap(), row);
        }
        assert!(ClusterRow::decode(1, &with_checksum(&[0; 9])).is_err());
    }
}
