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
        /// The number of points.
        points: u64,
    },
    /// The points of some spaces.
    Spaces {
        /// The spaces that have points.
        spaces: Vec<SpaceKey>,
        /// Their points.
        ids: RoaringBitmap,
    },
}

impl PointScope {
    /// The part of a collection in `scope`. A scope that contains every point is [`PointScope::All`], whose searches need
    /// no bitmap.
    pub(crate) fn read(kb: &Kb, txn: &RoTxn, collection: u16, scope: &Scope) -> InternalResult<Self> {
        let points = bitmap::read(kb, txn, collection, Field::Live)?.len();
        let Scope::Spaces(names) = scope else { return Ok(Self::All { points }) };
        let (mut spaces, mut ids) = (Vec::new(), RoaringBitmap::new());
        for name in names {
            let of_space = bitmap::read(kb, txn, collection, Field::Tag(SPACE_TAG, name.as_str()))?;
            if !of_space.is_empty() {
                spaces.push(SpaceKey::of(name.as_str()));
                ids |= of_space;
            }
        }
        Ok(if ids.len() == points { Self::All { points } } else { Self::Spaces { spaces, ids } })
    }

    /// The number of points in the scope.
    pub(crate) fn points(&self) -> u64 {
        match self {
            Self::All { points } => *points,
            Self::Spaces { ids, .. } => ids.len(),
        }
    }

    /// The points in the scope; `None` if all are.
    pub(crate) const fn ids(&self) -> Option<&RoaringBitmap> {
        match self {
            Self::All { .. } => None,
            Self::Spaces { ids, .. } => Some(ids),
        }
    }

    /// The points of the scope that are also `selected`; `None` if all points are.
    pub(crate) fn and(&self, selected: Option<RoaringBitmap>) -> Option<RoaringBitmap> {
        match (self.ids(), selected) {
            (Some(ids), Some(selected)) => Some(selected & ids),
            (Some(ids), None) => Some(ids.clone()),
            (None, selected) => selected,
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
