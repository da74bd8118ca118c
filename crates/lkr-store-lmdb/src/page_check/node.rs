//! Parses meta pages, tree pages and nodes.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use super::META_PAGES;

/// The length of a page header: page number, padding, flags, bounds of the free space.
pub(crate) const HEADER: usize = 16;
/// The length of a node in front of its key: length and flags of the value, length of the key.
pub(crate) const NODE_HEADER: usize = 8;
const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const META: u16 = 0x08;

/// The value of a node is on overflow pages.
const BIG: u16 = 0x01;
/// The value of a node is a tree record.
const SUBTREE: u16 = 0x02;

/// The bytes of a number at an offset; `None` beyond the end.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_ne_bytes)
}

/// A meta page.
#[derive(Debug)]
pub(super) struct Meta {
    pub(super) page: usize,
    pub(super) free: TreeRecord,
    pub(super) main: TreeRecord,
    pub(super) last_page: u64,
    transaction: u64,
}

impl Meta {
    const LENGTH: usize = HEADER + 136;

    /// The newer of the two meta pages, which is the one that LMDB uses; or why they cannot be used.
    pub(super) fn latest(file: &File) -> io::Result<Result<Self, String>> {
        let Some(first) = Self::read(file, 0)? else {
            return Ok(Err("the first meta page is damaged, so no other page can be reached".to_owned()));
        };
        let Some(second) = Self::read(file, first.page as u64)? else {
            return Ok(Err("the second meta page is damaged".to_owned()));
        };
        if first.page != second.page {
            return Ok(Err("the two meta pages disagree on the page size".to_owned()));
        }
        Ok(Ok(if second.transaction > first.transaction { second } else { first }))
    }

    fn read(file: &File, at: u64) -> io::Result<Option<Self>> {
        let mut bytes = Vec::with_capacity(Self::LENGTH);
        let mut file = file;
        file.seek(SeekFrom::Start(at))?;
        file.take(Self::LENGTH as u64).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (magic, version) = (u32_at(bytes, HEADER)?, u32_at(bytes, HEADER + 4)?);
        let page = u32_at(bytes, HEADER + 24)? as usize;
        let fits = u16_at(bytes, 10)? == META
            && (magic, version) == (MAGIC, VERSION)
            && page.is_power_of_two()
            && (256..=65_536).contains(&page);
        let meta = Self {
            page,
            free: TreeRecord::parse(bytes.get(HEADER + 24..)?)?,
            main: TreeRecord::parse(bytes.get(HEADER + 72..)?)?,
            last_page: u64_at(bytes, HEADER + 120)?,
            transaction: u64_at(bytes, HEADER + 128)?,
        };
        let pages = meta.last_page.checked_add(1)?;
        (fits && pages >= META_PAGES).then_some(meta)
    }
}

/// The stored description of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeRecord {
    pub(super) flags: u16,
    pub(super) depth: u16,
    pub(super) branches: u64,
    pub(super) leaves: u64,
    pub(super) overflows: u64,
    pub(super) entries: u64,
    /// The page of the root; all ones for an empty tree.
    pub(super) root: u64,
}

impl TreeRecord {
    pub(super) const LENGTH: usize = 48;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            branches: u64_at(bytes, 8)?,
            leaves: u64_at(bytes, 16)?,
            overflows: u64_at(bytes, 24)?,
            entries: u64_at(bytes, 32)?,
            root: u64_at(bytes, 40)?,
        })
    }
}

/// A tree page, with all nodes inside it.
pub(super) enum Page<'p> {
    Branch(Vec<(&'p [u8], u64)>),
    Leaf(Vec<(&'p [u8], NodeValue<'p>)>),
}

/// The value of a leaf node.
#[derive(Debug, Clone, Copy)]
pub(super) enum NodeValue<'p> {
    Inline(&'p [u8]),
    Tree(&'p [u8]),
    /// The first page, and the length in bytes.
    Overflow(u64, usize),
}

impl<'p> Page<'p> {
    /// Parses the page with the number `own`; `None` if it is damaged.
    pub(super) fn parse(bytes: &'p [u8], own: u64) -> Option<Self> {
        let (lower, upper) = (usize::from(u16_at(bytes, 12)?), usize::from(u16_at(bytes, 14)?));
        // In a page of 65,536 bytes the upper bound overflows its field to 0.
        let upper = if upper == 0 && bytes.len() > usize::from(u16::MAX) { bytes.len() } else { upper };
        let bounds = HEADER <= lower && lower <= upper && upper <= bytes.len() && lower % 2 == 0;
        if !bounds || u64_at(bytes, 0)? != own {
            return None;
        }
        let offsets = bytes.get(HEADER..lower)?.as_chunks::<2>().0.iter();
        let nodes = offsets.map(|offset| usize::from(u16::from_ne_bytes(*offset)));
        let nodes = nodes.map(|at| (at >= upper && at % 2 == 0).then(|| Node::parse(bytes, at))?);
        let nodes = nodes.collect::<Option<Vec<_>>>()?;
        let is_leaf = u16_at(bytes, 10)? == LEAF;
        // Nodes have no gaps between them: with a wrong length LMDB would later move the others wrongly.
        if nodes.iter().map(|node| node.length(is_leaf)).sum::<usize>() != bytes.len() - upper {
            return None;
        }
        match u16_at(bytes, 10)? {
            BRANCH => Some(Self::Branch(nodes.iter().map(Node::child).collect())),
            LEAF => Some(Self::Leaf(nodes.iter().map(Node::row).collect::<Option<_>>()?)),
            _ => None,
        }
    }
}

/// The number of overflow pages that start at the page `own`; `None` if it is not an overflow page.
pub(super) fn overflow_pages(bytes: &[u8], own: u64) -> Option<u64> {
    let begins = u64_at(bytes, 0) == Some(own) && u16_at(bytes, 10) == Some(OVERFLOW);
    u32_at(bytes, 12).filter(|_| begins).map(u64::from)
}

/// A node: the two halves of the value's length (in a branch: the low parts of the child's page number), flags (in a
/// branch: the high part), the key's length, the key.
struct Node<'p> {
    low: u32,
    flags: u16,
    key: &'p [u8],
    rest: &'p [u8],
}

impl<'p> Node<'p> {
    fn parse(bytes: &'p [u8], at: usize) -> Option<Self> {
        let node = bytes.get(at..)?;
        let (key, rest) = node.get(NODE_HEADER..)?.split_at_checked(usize::from(u16_at(node, 6)?))?;
        let low = u32::from(u16_at(node, 0)?) | u32::from(u16_at(node, 2)?) << 16;
        Some(Self { low, flags: u16_at(node, 4)?, key, rest })
    }

    /// The number of bytes that the node occupies.
    const fn length(&self, is_leaf: bool) -> usize {
        let data = match (is_leaf, self.flags) {
            (false, _) => 0,
            (true, BIG) => 8,
            (true, _) => self.low as usize,
        };
        (NODE_HEADER + self.key.len() + data).next_multiple_of(2)
    }

    fn child(&self) -> (&'p [u8], u64) {
        (self.key, u64::from(self.low) | u64::from(self.flags) << 32)
    }

    fn row(&self) -> Option<(&'p [u8], NodeValue<'p>)> {
        let length = self.low as usize;
        let data = match self.flags {
            0 => NodeValue::Inline(self.rest.get(..length)?),
            BIG => NodeValue::Overflow(u64_at(self.rest, 0)?, length),
            SUBTREE if length == TreeRecord::LENGTH => NodeValue::Tree(self.rest.get(..length)?),
            _ => return None,
        };
        Some((self.key, data))
    }
}
