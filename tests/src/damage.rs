//! Damages the clusters of vectors of a stopped server.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::{Seed, Server};

/// The number of kinds of damage.
const KINDS: u64 = 5;

/// Damages the clusters of vectors of a stopped server: truncates or removes files, flips bytes, or changes the lineage mark.
/// Returns the number of folders of clusters.
///
/// # Panics
/// If a file cannot be changed.
pub fn damage_clusters(server: &Server, seed: &mut Seed) -> usize {
    let folders = folders(&server.data_dir());
    for folder in &folders {
        damage(folder, seed);
    }
    folders.len()
}

/// The folders of clusters.
fn folders(data_dir: &Path) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(data_dir.join("store/clusters")) else { return Vec::new() };
    let folders = folders.map(|folder| folder.expect("a folder").path());
    folders.filter(|folder| folder.join("data.mdb").exists()).collect()
}

fn damage(folder: &Path, seed: &mut Seed) {
    let data = folder.join("data.mdb");
    let length = fs::metadata(&data).expect("its length").len();
    match seed.below(KINDS) {
        0 => fs::remove_dir_all(folder).expect("remove folder"),
        1 => {
            let file = File::options().write(true).open(&data).expect("clusters");
            file.set_len(seed.below(length + 1)).expect("truncate");
        }
        2 => fs::write(folder.join("lineage"), "of another store").expect("write lineage"),
        3 => flip(&data, 1, length, seed),
        _ => flip(&data, 1 + length / 20_000, length, seed),
    }
}

/// Flips one bit in each of `count` bytes.
fn flip(path: &Path, count: u64, length: u64, seed: &mut Seed) {
    let mut file = File::options().read(true).write(true).open(path).expect("clusters");
    for _ in 0..count {
        let (at, mut byte) = (SeekFrom::Start(seed.below(length.max(1))), [0]);
        file.seek(at).and_then(|_| file.read_exact(&mut byte)).expect("a byte");
        byte[0] ^= 1 << seed.below(8);
        file.seek(at).and_then(|_| file.write_all(&byte)).expect("another byte");
    }
}
