//! Takes the files of the page out of the archive of Swagger UI, and compresses them.

use std::{
    borrow::Cow,
    env,
    fmt::Write as _,
    fs,
    io::{Cursor, Read, Write as _},
    path::Path,
};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::{ZipArchive, read::ZipFile};

/// The files, each by the end of its path in the archive, with its content type.
const FILES: [(&str, &str); 2] = [
    ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("swagger-ui.css", "text/css; charset=utf-8"),
];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR")?;
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED))?;
    let mut table = format!("static ASSETS: [Asset; {}] = [\n", FILES.len());
    for (name, content_type) in FILES {
        let entry = entry_name(&archive, name)?;
        let mut file = archive.by_name(&entry)?;
        let version = format!("{:08x}", file.crc32());
        write_gzipped(&mut file, &Path::new(&out).join(name))?;
        writeln!(
            table,
            "    Asset {{ name: {name:?}, content_type: {content_type:?}, version: {version:?}, \
             gzipped: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")) }},"
        )?;
    }
    table.push_str("];\n");
    fs::write(Path::new(&out).join("assets.rs"), table)?;
    Ok(())
}

/// The path of a file in the folder `dist`.
fn entry_name<R: Read + std::io::Seek>(archive: &ZipArchive<R>, name: &str) -> Result<String> {
    let suffix = format!("dist/{name}");
    let mut entries = archive.file_names().filter_map(Result::ok);
    let entry = entries.find(|entry| entry.ends_with(&suffix));
    entry.map(Cow::into_owned).with_context(|| format!("the archive of Swagger UI has no {suffix}"))
}

fn write_gzipped<R: Read>(file: &mut ZipFile<'_, R>, to: &Path) -> Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes)?;
    fs::write(to, encoder.finish()?)?;
    Ok(())
}
