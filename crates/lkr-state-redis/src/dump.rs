//! The file of a snapshot.
//!
//! It begins with [`MAGIC`]. Records follow, in no order; a record may occur twice, with the same content. Each is a byte 1,
//! the lengths of key and stored record as 4 bytes, the key and the stored record. The end is a byte 0, the highest version
//! as 8 bytes, and the CRC-32C of all bytes before it as 4 bytes. Numbers are big-endian.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Seek as _, Write},
    path::{Path, PathBuf},
};

use crc_fast::{CrcAlgorithm, Digest};

const FILE: &str = "records.lkr";
const PARTIAL: &str = "records.partial";
const MAGIC: &[u8; 8] = b"LKRREDI1";
const RECORD: u8 = 1;
const END: u8 = 0;
/// Longer than any key or stored record; a larger length is damage.
const LONGEST: u32 = 1 << 21;

/// A key and its stored record.
pub(crate) type Stored = (Vec<u8>, Vec<u8>);

/// The file while it is written. It gets its final name last, so an incomplete snapshot is never read.
pub(crate) struct DumpWriter {
    folder: PathBuf,
    file: Checked<BufWriter<File>>,
}

impl DumpWriter {
    /// Makes the folder, which must not exist.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir(folder)?;
        let mut file = Checked::new(BufWriter::new(File::create_new(folder.join(PARTIAL))?));
        file.write_all(MAGIC)?;
        Ok(Self { folder: folder.to_owned(), file })
    }

    pub(crate) fn write(&mut self, (key, record): &Stored) -> io::Result<()> {
        self.file.write_all(&[RECORD])?;
        for part in [key, record] {
            let len = u32::try_from(part.len()).map_err(|_| invalid("a record is too long"))?;
            self.file.write_all(&len.to_be_bytes())?;
        }
        self.file.write_all(key)?;
        self.file.write_all(record)
    }

    pub(crate) fn finish(mut self, highest_version: u64) -> io::Result<()> {
        self.file.write_all(&[END])?;
        self.file.write_all(&highest_version.to_be_bytes())?;
        let checksum = self.file.checksum();
        self.file.write_all(&checksum.to_be_bytes())?;
        self.file.inner.flush()?;
        self.file.inner.get_ref().sync_all()?;
        fs::rename(self.folder.join(PARTIAL), self.folder.join(FILE))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// The records of a file whose checksum is right.
pub(crate) struct DumpReader {
    file: Checked<BufReader<File>>,
    /// The highest version of the records.
    pub(crate) highest_version: u64,
}

impl DumpReader {
    /// # Errors
    /// `InvalidData` if the file is damaged.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut reader = Self { file: Checked::open(folder)?, highest_version: 0 };
        while reader.next()?.is_some() {}
        reader.highest_version = u64::from_be_bytes(reader.file.array()?);
        let checksum = reader.file.checksum();
        if u32::from_be_bytes(reader.file.array()?) != checksum {
            return Err(invalid("the checksum of the snapshot is wrong"));
        }
        reader.file.inner.rewind()?;
        reader.file.skip_magic()?;
        Ok(reader)
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> io::Result<Option<Stored>> {
        match self.file.array()? {
            [END] => Ok(None),
            [RECORD] => {
                let (key, record) = (self.file.array()?, self.file.array()?);
                let (key, record) = (self.file.bytes(key)?, self.file.bytes(record)?);
                Ok(Some((key, record)))
            }
            _ => Err(invalid("the snapshot is damaged")),
        }
    }
}

/// A file and the checksum of what was read or written.
struct Checked<F> {
    inner: F,
    checksum: Digest,
}

impl<F> Checked<F> {
    fn new(inner: F) -> Self {
        Self { inner, checksum: Digest::new(CrcAlgorithm::Crc32Iscsi) }
    }

    /// The CRC-32C.
    fn checksum(&self) -> u32 {
        self.checksum.finalize() as u32
    }
}

impl<F: Write> Checked<F> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl Checked<BufReader<File>> {
    fn open(folder: &Path) -> io::Result<Self> {
        let mut file = Self::new(BufReader::new(File::open(folder.join(FILE))?));
        file.skip_magic()?;
        Ok(file)
    }

    fn skip_magic(&mut self) -> io::Result<()> {
        if self.array::<8>()? == *MAGIC { Ok(()) } else { Err(invalid("the file is no snapshot of Redis")) }
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, len: [u8; 4]) -> io::Result<Vec<u8>> {
        let len = u32::from_be_bytes(len);
        if len > LONGEST {
            return Err(invalid("the snapshot is damaged"));
        }
        let mut bytes = vec![0; len as usize];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid("the snapshot ends early"),
            _ => error,
        })?;
        self.checksum.update(bytes);
        Ok(())
    }
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path) -> Vec<Stored> {
        let records: Vec<Stored> = (0..40u8).map(|n| (vec![n; 3], vec![n; usize::from(n) * 100])).collect();
        let mut writer = DumpWriter::create(folder).unwrap();
        records.iter().for_each(|record| writer.write(record).unwrap());
        writer.finish(77).unwrap();
        records
    }

    #[test]
    fn records_come_back_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("copy");
        let records = written(&folder);
        let mut reader = DumpReader::open(&folder).unwrap();
        assert_eq!(reader.highest_version, 77);
        let read: Vec<Stored> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!(read, records);
    }

    #[test]
    fn damaged_or_short_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("copy");
        written(&folder);
        let file = folder.join(FILE);
        let bytes = fs::read(&file).unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            fs::write(&file, &damaged).unwrap();
            assert!(DumpReader::open(&folder).is_err(), "byte {at}");
            fs::write(&file, &bytes[..at]).unwrap();
            assert!(DumpReader::open(&folder).is_err(), "length {at}");
        }
    }
}
