#![doc = include_str!("../README.md")]

use std::io::{self, Read};

use flate2::read::GzDecoder;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The path below which a server answers the files.
pub const FILES_PATH: &str = "/console";

/// The content security policy of the page, besides what every page of a server has: what it loads comes from the server
/// itself, and no text becomes markup or script.
pub const POLICY: &str = "script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The first segments of the addresses of the console. `web/src/app.tsx` has the addresses.
const PAGES: [&str; 8] = ["login", "account", "add", "documents", "tasks", "spaces", "keys", "admin"];

/// A file of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    name: &'static str,
    content_type: &'static str,
    gzipped: &'static [u8],
}

/// What a page is told by the server.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// What the server allows, as a JSON object: `Options` in `web/src/options.ts`.
    pub json: &'a str,
    /// The theme that the person chose.
    pub theme: Theme,
}

/// Colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// Those of the system.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// The theme of this name; that of the system for an unknown name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::Auto,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The file with this name, the page excepted.
#[must_use]
pub fn file(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name && name != "index.html")
}

/// Every file, the page excepted.
pub fn files() -> impl Iterator<Item = &'static File> {
    FILES.iter().filter(|file| file.name != "index.html")
}

/// The page, as HTML.
///
/// # Errors
/// The built files are damaged.
pub fn page(options: &Options<'_>) -> io::Result<String> {
    let page = FILES.iter().find(|file| file.name == "index.html");
    let page = page.ok_or_else(|| io::Error::other("the console was built without its page"))?;
    let html = String::from_utf8(page.bytes()?).map_err(io::Error::other)?;
    Ok(html.replace("{theme}", options.theme.name()).replace("{options}", &attribute(options.json)))
}

/// Whether an address is one of the console's pages. Pages of documents and tasks that do not exist are pages too: the
/// console shows that there is nothing.
#[must_use]
pub fn is_page(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    path == "/" || PAGES.contains(&first)
}

impl File {
    /// Its name, which changes with its contents if it [is immutable](Self::is_immutable).
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The content type.
    #[must_use]
    pub const fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// Whether its name has a hash of its contents, so that a browser may keep it for ever.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        self.name.contains('-')
    }

    /// The file, compressed with gzip.
    #[must_use]
    pub const fn gzipped(&self) -> &'static [u8] {
        self.gzipped
    }

    /// The file.
    ///
    /// # Errors
    /// The compressed file is damaged.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.gzipped).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A text as the value of an attribute in quotation marks.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    const FIRST_PAGE_LIMIT: usize = 100_000;

    #[test]
    fn the_page_loads_files_that_are_there_and_nothing_else() {
        let html = page(&Options { json: "{}", theme: Theme::Auto }).unwrap();
        let loaded: Vec<&str> =
            html.split('"').filter(|value| value.starts_with('/') && !value.starts_with("/docs")).collect();
        // The icon, the style sheet and the script, and what the script imports.
        assert!(loaded.len() >= 3 && loaded.iter().any(|path| path.ends_with(".css")), "{loaded:?}");
        for path in loaded {
            let name = path.strip_prefix("/console/").unwrap();
            assert!(file(name).is_some(), "{name}");
        }
        assert!(!html.contains("<style") && !html.contains("style=") && !html.contains("onload="));
    }

    #[test]
    fn the_first_page_is_small() {
        // The rest is loaded when a page of it is opened.
        let is_first = |file: &&File| {
            ["app-", "chunk-", "style-", "index."].iter().any(|start| file.name.starts_with(start))
        };
        let bytes: usize = FILES.iter().filter(is_first).map(|file| file.gzipped.len()).sum();
        assert!(bytes > 0 && bytes < FIRST_PAGE_LIMIT, "{bytes} compressed bytes");
    }

    #[test]
    fn options_cannot_leave_their_attribute() {
        let json = serde_json::json!({ "version": "\"><script>alert(1)</script>&" }).to_string();
        let html = page(&Options { json: &json, theme: Theme::Dark }).unwrap();
        assert!(!html.contains("<script>alert"));
        assert!(html.contains("&quot;&gt;&lt;script&gt;"));
    }

    #[test]
    fn addresses_of_the_console_are_told_from_others() {
        for path in ["/", "/documents", "/documents/0190", "/admin/settings", "/login"] {
            assert!(is_page(path), "{path}");
        }
        for path in ["/api", "/documentsx", "/metrics", "/etc/passwd", "/console/app.js"] {
            assert!(!is_page(path), "{path}");
        }
    }

    #[test]
    fn addresses_are_those_of_the_routes_in_the_sources() {
        let source = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/src").join(name);
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let app = source("app.tsx");
        let routes: Vec<&str> = quoted(&app, "<Route path=\"").collect();
        let segments =
            routes.iter().filter_map(|route| route.split('/').nth(1)).filter(|first| !first.is_empty());
        assert_eq!(segments.collect::<BTreeSet<_>>(), PAGES.into_iter().collect());
        let places = source("routes.ts");
        for address in routes.into_iter().chain(quoted(&places, "href: \"")) {
            assert!(is_page(address), "{address}");
        }
    }

    /// The texts between each `start` and the next quotation mark.
    fn quoted<'a>(source: &'a str, start: &'static str) -> impl Iterator<Item = &'a str> {
        source.split(start).skip(1).filter_map(|rest| rest.split('"').next())
    }

    #[test]
    fn files_with_a_hash_in_their_name_are_immutable() {
        assert!(files().any(|file| file.name.starts_with("app-") && file.is_immutable()));
        assert!(!file("icon.svg").unwrap().is_immutable());
        assert!(file("index.html").is_none());
    }
}
