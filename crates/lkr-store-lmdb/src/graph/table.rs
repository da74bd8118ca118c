//! The graph environment, with one row for each collection's graphs.

use std::path::{Path, PathBuf};

use hannoy::distances::Cosine;
use heed::{CommitOrAbort, RoTxn, RwTxn};

use super::row_key;
use crate::{
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    env::{Environment, Table, create_tables, open_env},
    error::{Failure, InternalResult},
};

/// The graphs of all collections in one environment, each under an index of hannoy.
#[derive(Debug)]
pub(crate) struct GraphEnv {
    pub(crate) env: Environment,
    /// Collection → [`GraphRow`].
    pub(crate) rows: Table,
    pub(crate) graphs: hannoy::Database<'static, Cosine>,
    pub(crate) path: PathBuf,
}

impl GraphEnv {
    pub(crate) fn open(path: &Path, map_size: usize) -> InternalResult<Self> {
        let env = open_env(path, map_size, 2)?;
        let [rows] = create_tables(&env, ["rows"])?;
        let txn = env.write_txn()?;
        let created = env.create_databases_and_commit(txn, |opener, txn| {
            opener.create_database(txn, Some("graphs")).map(CommitOrAbort::<_, ()>::Commit)
        })?;
        let graphs = created.commit().ok_or_else(|| Failure::internal("the graphs were not opened"))?;
        Ok(Self { env, rows, graphs, path: path.to_owned() })
    }

    pub(crate) fn row(&self, txn: &RoTxn, collection: u16) -> InternalResult<Option<GraphRow>> {
        let checksummed = self.rows.get(txn, &row_key(collection))?;
        checksummed.map(|checksummed| GraphRow::decode(collection, checksummed)).transpose()
    }

    pub(crate) fn put_row(&self, txn: &mut RwTxn, collection: u16, row: &GraphRow) -> InternalResult<()> {
        Ok(self.rows.put(txn, &row_key(collection), &with_checksum(&row.encode()))?)
    }

    pub(crate) fn all_rows(&self, txn: &RoTxn) -> InternalResult<Vec<(u16, GraphRow)>> {
        let mut rows = Vec::new();
        for row in self.rows.iter(txn)? {
            let (key, checksummed) = row?;
            let collection = key.try_into().map(u16::from_be_bytes);
            let collection = collection.map_err(|_| damaged(|| "a row of the graphs".to_owned()))?;
            rows.push((collection, GraphRow::decode(collection, checksummed)?));
        }
        Ok(rows)
    }

    /// A writer for the graph.
    pub(crate) fn writer(&self, graph: &GraphInfo, dims: usize) -> hannoy::Writer<'static, Cosine> {
        hannoy::Writer::new(self.graphs, graph.index, dims)
    }
}

/// The graphs of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GraphRow {
    /// The graph that searches use.
    pub(crate) current: GraphInfo,
    /// The replacement that is being built.
    pub(crate) next: Option<GraphInfo>,
}

/// A graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GraphInfo {
    /// Its index in hannoy.
    pub(crate) index: u16,
    /// All points below this id that existed at the time were added.
    pub(crate) watermark: u32,
    /// The number of points that were added.
    pub(crate) items: u32,
}

impl GraphInfo {
    pub(crate) const fn empty(index: u16) -> Self {
        Self { index, watermark: 0, items: 0 }
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = self.index.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.watermark.to_le_bytes());
        bytes.extend_from_slice(&self.items.to_le_bytes());
        bytes
    }

    fn decode(fields: &mut FieldReader) -> Option<Self> {
        Some(Self { index: fields.u16()?, watermark: fields.u32()?, items: fields.u32()? })
    }
}

impl GraphRow {
    /// The indexes of its graphs in hannoy.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = u16> {
        [Some(self.current.index), self.next.map(|next| next.index)].into_iter().flatten()
    }

    fn encode(self) -> Vec<u8> {
        [self.current.encode(), self.next.map(GraphInfo::encode).unwrap_or_default()].concat()
    }

    fn decode(collection: u16, checksummed: &[u8]) -> InternalResult<Self> {
        let name = || format!("the row of the graph of collection number {collection}");
        let mut fields = FieldReader(strip_checksum(checksummed, name)?);
        let current = GraphInfo::decode(&mut fields).ok_or_else(|| damaged(name))?;
        Ok(Self { current, next: GraphInfo::decode(&mut fields) })
    }
}
