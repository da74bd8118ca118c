//! Lists the built files of the console, which are compressed already.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=dist");
    println!("cargo::rerun-if-changed=build.rs");
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("dist");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dist)? {
        let name =
            entry?.file_name().into_string().map_err(|name| format!("{} is not text", name.display()))?;
        names.push(name.strip_suffix(".gz").ok_or_else(|| format!("{name} is not compressed"))?.to_owned());
    }
    names.sort();
    let mut table = String::from("static FILES: &[File] = &[\n");
    for name in names {
        let path = dist.join(format!("{name}.gz"));
        writeln!(
            table,
            "    File {{ name: {name:?}, content_type: {:?}, gzipped: include_bytes!({path:?}) }},",
            content_type(&name)?
        )?;
    }
    table.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("files.rs"), table)?;
    Ok(())
}

fn content_type(name: &str) -> Result<&'static str, String> {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("js") => Ok("text/javascript; charset=utf-8"),
        Some("css") => Ok("text/css; charset=utf-8"),
        Some("html") => Ok("text/html; charset=utf-8"),
        Some("svg") => Ok("image/svg+xml"),
        Some("txt") => Ok("text/plain; charset=utf-8"),
        _ => Err(format!("{name} has no known content type")),
    }
}
