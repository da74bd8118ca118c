//! Packs pages: writes rows again whose pages are part empty.
//!
//! LMDB splits a full page near its middle if a row is inserted before its last one, and merges pages only once a page is a quarter
//! full. So where rows are inserted among others, as those of a collection before those of the next one, pages stay half
//! empty. Rows that are removed and inserted again one after another fill their pages. See docs/studies.md#packing.

use std::ops::Bound;

use heed::{RoTxn, RwTxn};

use crate::{
    codec::{verify_checksum, with_checksum},
    env::{Kb, Table},
    error::InternalResult,
    page_check::{NODE_HEADER, PAGE_HEADER},
    writer::Writer,
};

/// How many pages are packed in one transaction.
const SLICE_PAGES: usize = 128;
/// The most bytes of rows in a slice, unless a single row has more: values may be on pages of their own.
const SLICE_BYTES: usize = 1 << 20;
/// A slice is packed if that saves one of this many pages.
const GAIN_SHARE: usize = 10;
/// A table is packed again when its pages have become more or fewer, or its rows fewer, by one of this many.
const CHANGED_SHARE: u64 = 8;
/// Smaller tables are left alone.
const MIN_PAGES: u64 = 32;
/// If no more rows than these fit into a page, as many rows without content are behind those that are inserted, so that a full page
/// is split behind its last row. Otherwise it is split before it, which costs less than the room of so many rows would. See
/// docs/studies.md#packing.
const WIDE_ROWS: usize = 7;
/// For so many pages, the rows without content stay behind the same row.
const END_ROWS_PAGES: usize = 8;

/// What a row takes beside its key and its value: the header of its node, and its place in the page's list.
const ROW_HEADER: usize = NODE_HEADER + 2;
/// In place of a value that has pages of its own.
const PAGE_NUMBER: usize = 8;
/// The longest key.
const MAX_KEY: usize = 511;
/// How often pages are divided again at most in a slice. Once is usual; each needless division costs some rows' room.
const MOST_DIVISIONS: usize = 16;

/// A pass over the tables whose pages may be part empty.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    /// The tables that are left, the next one last, and the key behind which the next slice of it begins.
    tables: Vec<(&'static str, Table)>,
    after: Vec<u8>,
    /// The pages that were saved.
    saved: usize,
}

impl Packing {
    /// Whether a pass was begun.
    pub(crate) const fn is_under_way(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Begins a pass if tables have changed enough since the last one.
    pub(crate) fn begin_if_due(&mut self, kb: &Kb) -> InternalResult<()> {
        if self.is_under_way() {
            return Ok(());
        }
        let txn = kb.snapshot()?;
        for (name, table) in kb.named_tables() {
            if is_due(Size::of(table, &txn)?, Size::packed(kb, &txn, name)?) {
                self.tables.push((name, table));
            }
        }
        self.saved = 0;
        Ok(())
    }

    /// Packs the next slice.
    pub(crate) fn step(&mut self, kb: &Kb, writer: &Writer) -> InternalResult<()> {
        let Some(&(name, table)) = self.tables.last() else { return Ok(()) };
        let slice = Slice::next(table, &*kb.snapshot()?, &self.after)?;
        let Some(slice) = slice else {
            // The record is left behind if the table changes meanwhile, which only means that the next pass is due earlier.
            let kb = kb.clone();
            writer.write_blocking(move |txn| Size::of(table, txn)?.put_packed(&kb, txn, name))?;
            self.tables.pop();
            self.after.clear();
            if !self.is_under_way() {
                tracing::debug!(pages = self.saved, "pages packed");
            }
            return Ok(());
        };
        let pays_off = slice.pays_off();
        let Slice { last, pages, packed, rows } = slice;
        let after = std::mem::replace(&mut self.after, last.clone());
        if pays_off {
            self.saved += pages - packed;
            let rows_a_page = rows.div_ceil(packed);
            writer.write_blocking(move |txn| write_again(table, txn, (&after, &last), rows_a_page))?;
        }
        Ok(())
    }
}

/// How large a table is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    /// The pages that have rows.
    pages: u64,
    rows: u64,
}

impl Size {
    fn of(table: Table, txn: &RoTxn) -> InternalResult<Self> {
        let stat = table.stat(txn)?;
        Ok(Self { pages: stat.leaf_pages as u64, rows: stat.entries as u64 })
    }

    /// The size when the table was last packed; nothing if that is unknown.
    fn packed(kb: &Kb, txn: &RoTxn, table: &str) -> InternalResult<Self> {
        let stored = kb.tables.meta.get(txn, key_of(table).as_bytes())?;
        let numbers = stored.and_then(verify_checksum).map(|bytes| bytes.as_chunks().0);
        let Some([pages, rows]) = numbers else { return Ok(Self::default()) };
        Ok(Self { pages: u64::from_le_bytes(*pages), rows: u64::from_le_bytes(*rows) })
    }

    fn put_packed(self, kb: &Kb, txn: &mut RwTxn, table: &str) -> InternalResult<()> {
        let value = [self.pages.to_le_bytes(), self.rows.to_le_bytes()].concat();
        Ok(kb.tables.meta.put(txn, key_of(table).as_bytes(), &with_checksum(&value))?)
    }
}

/// The key in `meta` of the size that a table had when it was last packed.
fn key_of(table: &str) -> String {
    format!("packed/{table}")
}

fn is_due(now: Size, packed: Size) -> bool {
    let changed = packed.pages / CHANGED_SHARE;
    let is_changed =
        now.pages.abs_diff(packed.pages) > changed || now.rows < packed.rows - packed.rows / CHANGED_SHARE;
    now.pages >= MIN_PAGES && is_changed
}

/// Neighbouring pages of a table.
#[derive(Debug, PartialEq, Eq)]
struct Slice {
    /// The last key in them.
    last: Vec<u8>,
    /// How many there are, how many would do, and how many rows they have.
    pages: usize,
    packed: usize,
    rows: usize,
}

impl Slice {
    /// The pages whose keys are above `after`; `None` if there are none. In a read transaction, a key lies in its page of the map,
    /// so its address says where a page begins.
    fn next(table: Table, txn: &RoTxn, after: &[u8]) -> InternalResult<Option<Self>> {
        let page_size = table.stat(txn)?.page_size as usize;
        let room = room(page_size);
        let (mut last, mut slice) = (None, Self { last: Vec::new(), pages: 0, packed: 1, rows: 0 });
        let (mut page, mut used, mut bytes) = (None, 0, 0);
        for row in table.range(txn, &(above(after), Bound::Unbounded))? {
            let (key, value) = row?;
            let this = Some(key.as_ptr().addr() / page_size);
            if this != page {
                if slice.pages == SLICE_PAGES || bytes > SLICE_BYTES {
                    break;
                }
                slice.pages += 1;
                page = this;
            }
            let width = row_width(key.len(), value.len(), room);
            if used + width > room {
                slice.packed += 1;
                used = 0;
            }
            used += width;
            bytes += key.len() + value.len();
            slice.rows += 1;
            last = Some(key);
        }
        Ok(last.map(|last| Self { last: last.to_vec(), ..slice }))
    }

    const fn pays_off(&self) -> bool {
        self.pages >= self.packed + self.pages.div_ceil(GAIN_SHARE)
    }
}

/// The keys above `after`. No key is empty, and LMDB looks for none.
const fn above(after: &[u8]) -> Bound<&[u8]> {
    if after.is_empty() { Bound::Unbounded } else { Bound::Excluded(after) }
}

/// The bytes of a page that rows may take.
const fn room(page_size: usize) -> usize {
    page_size.saturating_sub(PAGE_HEADER)
}

/// The bytes that a key and a value in a page may have. Two rows fit into a page; a longer value has pages of its own.
const fn widest(room: usize) -> usize {
    (room / 2).saturating_sub(ROW_HEADER)
}

/// The bytes that a row takes in a page with this room.
const fn row_width(key: usize, value: usize, room: usize) -> usize {
    let inline = if key + value > widest(room) { PAGE_NUMBER } else { value };
    (key + inline).next_multiple_of(2) + ROW_HEADER
}

/// Removes the rows above the key `after` and up to `last`, and inserts them again, so that they fill pages of their own.
fn write_again(
    table: Table,
    txn: &mut RwTxn,
    (after, last): (&[u8], &[u8]),
    rows_a_page: usize,
) -> InternalResult<()> {
    let rows = remove(table, txn, (above(after), Bound::Included(last)))?;
    let mut divider = Divider::put(table, txn, last)?;
    let is_wide = rows_a_page <= WIDE_ROWS;
    let end_rows = if is_wide { rows_a_page } else { 0 };
    // Rows without content far behind would be in another page.
    for some in rows.chunks(if is_wide { rows_a_page * END_ROWS_PAGES } else { usize::MAX }) {
        let end_rows = put_end_rows(table, txn, some, end_rows)?;
        for (key, value) in some {
            table.put(txn, key, value)?;
            if let Some(divider) = &mut divider {
                divider.divide(txn, key.len() + value.len())?;
            }
        }
        for key in &end_rows {
            table.delete(txn, key)?;
        }
    }
    divider.map_or(Ok(()), |divider| divider.remove(txn))
}

type Row = (Vec<u8>, Vec<u8>);

/// Puts rows without content behind `rows`, where the table has none, and returns their keys.
fn put_end_rows(table: Table, txn: &mut RwTxn, rows: &[Row], count: usize) -> InternalResult<Vec<Vec<u8>>> {
    let Some((last, _)) = rows.last() else { return Ok(Vec::new()) };
    let mut keys = Vec::with_capacity(count);
    for key in (0..count as u8).filter_map(|number| behind(last, number)) {
        if table.get(txn, &key)?.is_none() {
            table.put(txn, &key, &[])?;
            keys.push(key);
        }
    }
    Ok(keys)
}

/// A key behind `key`, if LMDB allows one as long.
fn behind(key: &[u8], number: u8) -> Option<Vec<u8>> {
    Some([key, &[0, number]].concat()).filter(|key| key.len() <= MAX_KEY)
}

/// Divides the pages of rows that are inserted from those of the rows behind them.
///
/// A page is filled to its end only if no row is behind the one that is inserted. At first, or where another page of the level
/// above begins, rows may come to lie in the page of those behind. So two rows are between, as wide as rows can be: only
/// one of them fits into a page with others, which ends behind these once that one is removed. Until then they must be enough that
/// LMDB does not merge their page with a neighbour.
struct Divider {
    table: Table,
    /// The room of a page.
    room: usize,
    keys: [Vec<u8>; 2],
    /// Whether the first of the two is there.
    has_first: bool,
    /// The bytes of rows that were inserted before it in its page.
    bytes: usize,
    /// How often it may be put again.
    left: usize,
}

impl Divider {
    /// Puts both behind `last`; `None` if the table has rows with their keys.
    fn put(table: Table, txn: &mut RwTxn, last: &[u8]) -> InternalResult<Option<Self>> {
        let [Some(first), Some(second)] = [u8::MAX - 1, u8::MAX].map(|number| behind(last, number)) else {
            return Ok(None);
        };
        let keys = [first, second];
        for key in &keys {
            if table.get(txn, key)?.is_some() {
                return Ok(None);
            }
        }
        let room = room(table.stat(txn)?.page_size as usize);
        let divider = Self { table, room, keys, has_first: true, bytes: 0, left: MOST_DIVISIONS };
        divider.keys.iter().try_for_each(|key| divider.put_widest(txn, key))?;
        Ok(Some(divider))
    }

    fn put_widest(&self, txn: &mut RwTxn, key: &[u8]) -> InternalResult<()> {
        let value = vec![0; widest(self.room).saturating_sub(key.len())];
        Ok(self.table.put(txn, key, &value)?)
    }

    /// Divides the pages after a row of so many bytes was inserted.
    fn divide(&mut self, txn: &mut RwTxn, bytes: usize) -> InternalResult<()> {
        let [first, second] = &self.keys;
        if !self.is_near_the_row_before(txn, if self.has_first { first } else { second })? {
            return Ok(());
        }
        if self.has_first {
            self.bytes += bytes;
            // LMDB does not merge a page of which a quarter is taken.
            if self.bytes > self.room / 4 {
                self.table.delete(txn, first)?;
                (self.has_first, self.bytes) = (false, 0);
            }
        } else if self.left > 0 {
            self.put_widest(txn, first)?;
            self.has_first = true;
            self.left -= 1;
        }
        Ok(())
    }

    /// Whether the row with this key and the one before it are as near in memory as the rows of a page. Those of two pages may be, too,
    /// because a page that was changed can be anywhere.
    fn is_near_the_row_before(&self, txn: &RoTxn, key: &[u8]) -> InternalResult<bool> {
        let Self { table, room, .. } = self;
        let (Some(this), Some(before)) =
            (table.get_greater_than_or_equal_to(txn, key)?, table.get_lower_than(txn, key)?)
        else {
            return Ok(false);
        };
        let bounds = |(key, value): (&[u8], &[u8])| {
            let ends = [key.as_ptr_range().end.addr(), value.as_ptr_range().end.addr()];
            // A value that has pages of its own is elsewhere.
            let end = if ends[0].abs_diff(ends[1]) < *room { ends[0].max(ends[1]) } else { ends[0] };
            (key.as_ptr().addr(), end)
        };
        let ((start, end), (start_before, end_before)) = (bounds(this), bounds(before));
        Ok(end.max(end_before) - start.min(start_before) <= *room)
    }

    fn remove(self, txn: &mut RwTxn) -> InternalResult<()> {
        for key in &self.keys {
            self.table.delete(txn, key)?;
        }
        Ok(())
    }
}

/// Removes rows and returns them.
fn remove(table: Table, txn: &mut RwTxn, range: (Bound<&[u8]>, Bound<&[u8]>)) -> InternalResult<Vec<Row>> {
    let mut rows = Vec::new();
    for row in table.range(txn, &range)? {
        let (key, value) = row?;
        rows.push((key.to_vec(), value.to_vec()));
    }
    for (key, _) in &rows {
        table.delete(txn, key)?;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
