//! The direction of imports between the files of a crate: none imports another that imports it, directly or through others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A file as the path of its module in the crate.
type Module = Vec<String>;

/// The imports between the files of a crate.
struct Imports {
    edges: BTreeMap<Module, BTreeSet<Module>>,
}

impl Imports {
    /// Reads the `use` declarations of a crate's source folder. Tests may import what they like.
    fn read(src: &Path) -> Result<Self> {
        let mut sources = BTreeMap::new();
        for file in rust_files(src)? {
            let module = module_of(file.strip_prefix(src)?);
            if module.last().is_some_and(|name| name == "tests") {
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            sources.insert(module, without_tests(&text));
        }
        let reexports: BTreeMap<(Module, String), Module> =
            sources.iter().flat_map(|(module, text)| reexports(module, text, &sources)).collect();
        let imported = |module: &Module, text: &str| {
            let paths = uses(text).into_iter().filter(|(is_public, _)| !is_public).map(|(_, path)| path);
            let targets = paths.filter_map(|path| resolve(module, &path, &sources, &reexports));
            targets.filter(|target| target != module && !target.is_empty()).collect()
        };
        let edges = sources.iter().filter(|(module, _)| !module.is_empty());
        Ok(Self { edges: edges.map(|(module, text)| (module.clone(), imported(module, text))).collect() })
    }

    /// A circle of files that import each other, if there is one.
    fn circle(&self) -> Option<Vec<String>> {
        self.edges.keys().find_map(|start| {
            let mut path = vec![start];
            self.find_way_back(start, &mut path, &mut BTreeSet::new())
                .then(|| path.into_iter().map(|module| module.join("::")).collect())
        })
    }

    fn find_way_back<'a>(
        &'a self,
        start: &Module,
        path: &mut Vec<&'a Module>,
        seen: &mut BTreeSet<&'a Module>,
    ) -> bool {
        let targets = path.last().and_then(|last| self.edges.get(*last)).into_iter().flatten();
        for target in targets {
            if target == start {
                return true;
            }
            if seen.insert(target) {
                path.push(target);
                if self.find_way_back(start, path, seen) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// `a/b.rs` is the module `a::b`, `lib.rs` the crate itself.
fn module_of(file: &Path) -> Module {
    let names = file.with_extension("");
    let names: Module = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names == ["lib"] || names == ["main"] { Vec::new() } else { names }
}

/// A file without its comments and its test module, which is the last thing in it.
fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The paths of the `use` declarations of a file, and whether each is a re-export.
fn uses(code: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code.get(..at).unwrap_or_default().lines().next_back().unwrap_or_default();
        let before =
            if code.get(..at).is_some_and(|before| before.ends_with('\n')) { "" } else { line.trim() };
        if !(before.is_empty() || before.starts_with("pub")) {
            continue;
        }
        let declaration = code.get(at + 4..).and_then(|rest| rest.split(';').next()).unwrap_or_default();
        let names = expand(&declaration.split_whitespace().collect::<Vec<_>>().join(" "));
        found.extend(names.into_iter().map(|path| (before.starts_with("pub"), path)));
    }
    found
}

/// The paths of one declaration: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(declaration: &str) -> Vec<Vec<String>> {
    let Some((prefix, group)) = declaration.split_once('{') else {
        let path = declaration.split(" as ").next().unwrap_or_default();
        return vec![
            path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        ];
    };
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if character != ',' || depth > 0 => part.push(character),
            _ => parts.push(String::new()),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expand(&format!("{prefix}{}", part.trim()))).collect()
}

/// The file that defines what `path`, in the file of `module`, names; `None` for another crate's.
fn resolve(
    module: &Module,
    path: &[String],
    sources: &BTreeMap<Module, String>,
    reexports: &BTreeMap<(Module, String), Module>,
) -> Option<Module> {
    let (first, _) = path.split_first()?;
    let (mut current, mut rest) = match first.as_str() {
        "crate" => (Vec::new(), path.get(1..)?),
        "self" => (module.clone(), path.get(1..)?),
        "super" => (module.clone(), path),
        _ if sources.contains_key(&child(module, first)) => (module.clone(), path),
        _ => return None,
    };
    while let Some((name, after)) = rest.split_first() {
        if name == "super" {
            current.pop();
        } else if sources.contains_key(&child(&current, name)) {
            current.push(name.clone());
        } else {
            break;
        }
        rest = after;
    }
    let name = rest.first().cloned().unwrap_or_default();
    let mut hops = 0;
    while let Some(target) = reexports.get(&(current.clone(), name.clone())).filter(|_| hops < 8) {
        current.clone_from(target);
        hops += 1;
    }
    Some(current)
}

fn child(module: &Module, name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The names that a file re-exports, with the files that define them.
fn reexports(
    module: &Module,
    text: &str,
    sources: &BTreeMap<Module, String>,
) -> Vec<((Module, String), Module)> {
    let public = uses(text).into_iter().filter(|(is_public, _)| *is_public);
    let resolved = public.filter_map(|(_, path)| {
        let name = path.last()?.clone();
        Some(((module.clone(), name), resolve(module, &path, sources, &BTreeMap::new())?))
    });
    resolved.filter(|((module, _), target)| module != target).collect()
}

#[test]
fn files_of_a_crate_do_not_import_each_other_in_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    for name in ["lkr-ingest", "lkr-retrieval"] {
        let imports = Imports::read(&crates.join(name).join("src")).unwrap();
        assert!(imports.edges.values().any(|targets| !targets.is_empty()), "{name}: no import was found");
        let circle = imports.circle();
        assert!(circle.is_none(), "{name}: these files import each other in a circle: {circle:?}");
    }
}

#[test]
fn circle_of_two_files_is_found_through_a_reexport() {
    let folder = std::env::temp_dir().join(format!("lkr-imports-{}", std::process::id()));
    fs::create_dir_all(folder.join("b")).unwrap();
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub(crate) use b::c::Deep;\n"),
        ("a.rs", "use std::fmt;\n\nuse crate::{\n    Deep, // a comment\n};\npub(crate) struct Top;\n"),
        ("b.rs", "pub(crate) mod c;\n"),
        ("b/c.rs", "use super::super::a::{self, Top};\npub(crate) struct Deep;\n"),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let circle = Imports::read(&folder).unwrap().circle();
    fs::write(
        folder.join("b/c.rs"),
        "pub(crate) struct Deep;\n#[cfg(test)]\nmod tests {\n    use crate::a::Top;\n}\n",
    )
    .unwrap();
    let without = Imports::read(&folder).unwrap().circle();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(circle.unwrap(), ["a", "b::c"]);
    assert_eq!(without, None);
}
