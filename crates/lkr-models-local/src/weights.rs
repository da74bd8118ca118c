//! Weights in a memory-mapped file.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::{bf16, f16};
use lkr_models::{Error, Result};
use memmap2::{Advice, Mmap};
use safetensors::{Dtype, SafeTensors};

use crate::error;

/// The ends of the name of the token table, one for each way to name it. The part before it is the prefix of all names.
const ANCHORS: [&str; 2] = ["embeddings.word_embeddings.weight", "embeddings.tok_embeddings.weight"];

/// A memory-mapped safetensors file.
#[derive(Debug)]
pub(crate) struct WeightsFile {
    path: PathBuf,
    map: Arc<Mmap>,
    prefix: String,
}

impl WeightsFile {
    /// Opens the weights of a transformer. The prefix of its names is found by the table of tokens.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut file = Self::open_module(path)?;
        let tensors = SafeTensors::deserialize(&file.map).map_err(|why| error::file(path, why))?;
        let names = tensors.names().into_iter();
        let prefixes = names.filter_map(|name| ANCHORS.iter().find_map(|anchor| name.strip_suffix(anchor)));
        let prefix = prefixes.min_by_key(|prefix| prefix.len()).map(str::to_owned);
        file.prefix =
            prefix.ok_or_else(|| error::file(path, format_args!("no tensor {}", ANCHORS.join(" or "))))?;
        Ok(file)
    }

    /// Opens the weights of a module, whose names have no prefix.
    pub(crate) fn open_module(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|why| unreadable(path, &why))?;
        #[expect(unsafe_code, reason = "mapping a file has no safe form")]
        // SAFETY: the map is read-only and read only as plain numbers, for which all bytes are valid. A model folder is
        // not written to while it is in use, as the documentation of `LocalEmbedder::open` requires.
        let map = unsafe { Mmap::map(&file) }.map_err(|why| error::file(path, why))?;
        // Reading ahead only saves page faults of the first queries, so a failure does not matter.
        let _ = map.advise(Advice::WillNeed);
        SafeTensors::deserialize(&map).map_err(|why| error::file(path, why))?;
        Ok(Self { path: path.to_owned(), map: Arc::new(map), prefix: String::new() })
    }

    /// The bytes of the whole file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The tensors by name. The header is parsed by each call, so keep the result for many lookups.
    pub(crate) fn tensors(&self) -> Result<Tensors<'_>> {
        let parsed = SafeTensors::deserialize(&self.map).map_err(|why| error::file(&self.path, why))?;
        Ok(Tensors { file: self, prefix: &self.prefix, parsed: Arc::new(parsed) })
    }
}

/// The error of a file that cannot be opened, with advice if the weights are there in the older form.
fn unreadable(path: &Path, why: &std::io::Error) -> Error {
    if path.with_file_name("pytorch_model.bin").is_file() {
        return error::file(
            path,
            format_args!("{why}; pytorch_model.bin is not supported, save it as safetensors"),
        );
    }
    error::file(path, why)
}

/// The tensors of a file.
#[derive(Debug)]
pub(crate) struct Tensors<'a> {
    file: &'a WeightsFile,
    /// The prefix of all names.
    prefix: &'a str,
    parsed: Arc<SafeTensors<'a>>,
}

impl Tensors<'_> {
    /// The tensors beside the model, such as its head: if the prefix is `bert.`, those without it.
    pub(crate) fn beside(&self) -> Self {
        let outer = self.prefix.trim_end_matches('.').rfind('.').map_or(0, |dot| dot + 1);
        let prefix = self.prefix.get(..outer).unwrap_or_default();
        Self { file: self.file, prefix, parsed: Arc::clone(&self.parsed) }
    }

    /// The table `name` with the given shape, whose rows are read one at a time.
    pub(crate) fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Table> {
        self.numbers(name, &[rows, columns]).map(|numbers| Table { numbers, columns })
    }

    /// The tensor `name` with the given shape. It is copied only if it is not float 32 or not aligned.
    pub(crate) fn floats(&self, name: &str, shape: &[usize]) -> Result<Floats> {
        let numbers = self.numbers(name, shape)?;
        if cfg!(target_endian = "little")
            && numbers.format == Format::F32
            && bytemuck::try_cast_slice::<u8, f32>(numbers.bytes()).is_ok()
        {
            return Ok(Floats::Mapped(numbers));
        }
        let mut owned = vec![0.0; shape.iter().product()];
        numbers.read(0, &mut owned);
        Ok(Floats::Owned(owned))
    }

    fn numbers(&self, name: &str, shape: &[usize]) -> Result<Numbers> {
        let fail = |why: String| error::file(&self.file.path, why);
        let name = format!("{}{name}", self.prefix);
        let tensor = self.parsed.tensor(&name).map_err(|_| fail(format!("tensor {name} is missing")))?;
        if tensor.shape() != shape {
            return Err(fail(format!("tensor {name} has shape {:?}, not {shape:?}", tensor.shape())));
        }
        let format = match tensor.dtype() {
            Dtype::F32 => Format::F32,
            Dtype::F16 => Format::F16,
            Dtype::BF16 => Format::Bf16,
            other => {
                return Err(fail(format!("tensor {name} has type {other:?}, which is not supported")));
            }
        };
        let map = Arc::clone(&self.file.map);
        // The tensor's bytes are part of the map; the difference of the addresses is its offset.
        let start = tensor.data().as_ptr().addr().wrapping_sub(map.as_ptr().addr());
        let range = start..start.saturating_add(tensor.data().len());
        if map.get(range.clone()).is_none() {
            return Err(fail(format!("tensor {name} lies outside the file")));
        }
        let numbers = Numbers { map, range, format };
        // Products of integers would hide them.
        if !numbers.are_finite() {
            return Err(fail(format!("tensor {name} has numbers that are not finite")));
        }
        Ok(numbers)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    F32,
    F16,
    Bf16,
}

/// Numbers in a mapped file, little-endian as in safetensors.
#[derive(Debug)]
pub(crate) struct Numbers {
    map: Arc<Mmap>,
    range: Range<usize>,
    format: Format,
}

impl Numbers {
    fn bytes(&self) -> &[u8] {
        self.map.get(self.range.clone()).unwrap_or_default()
    }

    fn are_finite(&self) -> bool {
        let bytes = self.bytes();
        match self.format {
            Format::F32 => are_finite(bytes, |raw| u32::from_le_bytes(raw) & 0x7f80_0000 != 0x7f80_0000),
            Format::F16 => are_finite(bytes, |raw| u16::from_le_bytes(raw) & 0x7c00 != 0x7c00),
            Format::Bf16 => are_finite(bytes, |raw| u16::from_le_bytes(raw) & 0x7f80 != 0x7f80),
        }
    }

    /// Copies the numbers from index `start` on into `out`, as many as fit.
    fn read(&self, start: usize, out: &mut [f32]) {
        let bytes = self.bytes();
        match self.format {
            Format::F32 => convert(bytes, start, out, f32::from_le_bytes),
            Format::F16 => convert(bytes, start, out, |raw| f16::from_le_bytes(raw).to_f32()),
            Format::Bf16 => convert(bytes, start, out, |raw| bf16::from_le_bytes(raw).to_f32()),
        }
    }
}

/// Whether all numbers are finite. All are looked at, which takes less time than looking whether to stop after each.
fn are_finite<const N: usize>(bytes: &[u8], is_finite: impl Fn([u8; N]) -> bool) -> bool {
    let (numbers, _) = bytes.as_chunks::<N>();
    numbers.iter().fold(true, |all, &raw| all & is_finite(raw))
}

fn convert<const N: usize>(bytes: &[u8], start: usize, out: &mut [f32], to_f32: impl Fn([u8; N]) -> f32) {
    let (numbers, _) = bytes.as_chunks::<N>();
    for (out, &raw) in out.iter_mut().zip(numbers.iter().skip(start)) {
        *out = to_f32(raw);
    }
}

/// A matrix that is read by rows: a table of embeddings stays in the file, whatever its type.
#[derive(Debug)]
pub(crate) struct Table {
    numbers: Numbers,
    columns: usize,
}

impl Table {
    /// Copies a row into `out`; the row must exist.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        self.numbers.read(row * self.columns, out);
    }
}

/// A tensor of float 32, mapped or owned.
#[derive(Debug)]
pub(crate) enum Floats {
    Mapped(Numbers),
    Owned(Vec<f32>),
}

impl Floats {
    pub(crate) fn as_slice(&self) -> &[f32] {
        match self {
            // The cast succeeded when the tensor was read.
            Self::Mapped(numbers) => bytemuck::try_cast_slice(numbers.bytes()).unwrap_or_default(),
            Self::Owned(owned) => owned,
        }
    }
}
