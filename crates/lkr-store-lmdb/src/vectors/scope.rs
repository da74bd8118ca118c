//! The points and posting lists of a query's scope.

use heed::RoTxn;
use lkr_domain::Scope;
use lkr_vectors::SPACE_TAG;
use roaring::RoaringBitmap;

use super::{
    bitmap::{self, Field},
    keys::SpaceKey,
    postings::{self, Block},
};
use crate::{env::Kb, error::InternalResult};

/// The part of a collection that is in a scope.
#[derive(Debug)]
pub(crate) enum PointScope {
    /// Every point.
    All {
        /// All points.
        ids: RoaringBitmap,
    },
    /// The points of some spaces.
    Spaces {
        /// The spaces that have points.
        spaces: Vec<SpaceKey>,
        /// Their points.
        ids: RoaringBitmap,
        /// The number of points of all spaces.
        total: u64,
    },
}

impl PointScope {
    /// The part of a collection in `scope`. A scope that contains every point is [`PointScope::All`], whose searches need
    /// no bitmap.
    pub(crate) fn read(kb: &Kb, txn: &RoTxn, collection: u16, scope: &Scope) -> InternalResult<Self> {
        let live = bitmap::read(kb, txn, collection, Field::Live)?;
        let Scope::Spaces(names) = scope else { return Ok(Self::All { ids: live }) };
        let (mut spaces, mut ids) = (Vec::new(), RoaringBitmap::new());
        for name in &**names {
            let of_space = bitmap::read(kb, txn, collection, Field::Tag(SPACE_TAG, name.as_str()))?;
            if !of_space.is_empty() {
                spaces.push(SpaceKey::of(name.as_str()));
                ids |= of_space;
            }
        }
        let total = live.len();
        Ok(if ids.len() == total { Self::All { ids: live } } else { Self::Spaces { spaces, ids, total } })
    }

    /// The number of points in the scope.
    pub(crate) fn points(&self) -> u64 {
        self.ids().len()
    }

    /// The number of points of the collection, in the scope or not.
    pub(crate) fn total(&self) -> u64 {
        match self {
            Self::All { ids } => ids.len(),
            Self::Spaces { total, .. } => *total,
        }
    }

    /// The points in the scope.
    pub(crate) const fn ids(&self) -> &RoaringBitmap {
        match self {
            Self::All { ids } | Self::Spaces { ids, .. } => ids,
        }
    }

    /// The points in the scope; `None` if all are.
    pub(crate) const fn restriction(&self) -> Option<&RoaringBitmap> {
        match self {
            Self::All { .. } => None,
            Self::Spaces { ids, .. } => Some(ids),
        }
    }

    /// The posting lists of a term in the spaces of the scope. Lists of other spaces are not read.
    pub(crate) fn blocks<'t>(
        &self,
        kb: &Kb,
        txn: &'t RoTxn,
        collection: u16,
        term: u32,
    ) -> InternalResult<Vec<Vec<Block<'t>>>> {
        match self {
            Self::All { .. } => postings::blocks_of_all_spaces(kb, txn, collection, term),
            Self::Spaces { spaces, .. } => {
                let lists = spaces.iter().map(|space| postings::blocks(kb, txn, collection, term, *space));
                lists.filter(|blocks| !matches!(blocks, Ok(blocks) if blocks.is_empty())).collect()
            }
        }
    }
}
