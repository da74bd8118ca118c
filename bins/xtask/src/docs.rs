//! The documentation names files, tests, types and anchors; these tests fail when one of them does not exist.

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use crate::root;

    /// The suffixes of files that are searched for names.
    const SOURCES: [&str; 2] = ["rs", "py"];

    fn read(path: impl AsRef<Path>) -> String {
        let path = root().unwrap().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// All files below `folder` with one of these suffixes, build outputs left out.
    fn files(folder: &Path, suffixes: &[&str]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !matches!(name, "target" | ".git" | "models" | "corpus" | "seeds" | "node_modules") {
                    found.extend(files(&path, suffixes));
                }
            } else if path
                .extension()
                .and_then(|suffix| suffix.to_str())
                .is_some_and(|s| suffixes.contains(&s))
            {
                found.push(path);
            }
        }
        found
    }

    fn sources() -> Vec<(PathBuf, String)> {
        let all = files(&root().unwrap(), &SOURCES);
        all.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
    }

    fn pages() -> Vec<(PathBuf, String)> {
        let all = files(&root().unwrap(), &["md"]);
        all.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
    }

    /// The anchor that a Markdown heading has on the common hosts: lower case, spaces as hyphens, punctuation dropped.
    fn anchor(heading: &str) -> String {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    }

    fn anchors(page: &str) -> BTreeSet<String> {
        page.lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(line.trim_start_matches('#')))
            .collect()
    }

    /// The words between backticks.
    fn code_spans(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    fn functions() -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (_, text) in sources() {
            for rest in text.split("fn ").skip(1) {
                names.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
            }
        }
        names
    }

    #[test]
    fn studies_named_in_code_have_a_section() {
        let known = anchors(&read("docs/studies.md"));
        let mut missing = Vec::new();
        for (path, text) in sources().into_iter().chain(pages()) {
            for rest in text.split("studies.md#").skip(1) {
                let named: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
                if !named.is_empty() && !known.contains(&named) {
                    missing.push(format!("{}: {named}", path.display()));
                }
            }
        }
        assert!(missing.is_empty(), "docs/studies.md lacks these sections:\n{}", missing.join("\n"));
    }

    #[test]
    fn relative_links_lead_to_files_and_sections() {
        let mut broken = Vec::new();
        for (path, text) in pages() {
            for rest in text.split("](").skip(1) {
                let target = rest.split(')').next().unwrap();
                if target.contains("://") || target.starts_with("mailto:") || target.contains("::") {
                    continue;
                }
                let (file, section) = target.split_once('#').map_or((target, None), |(f, s)| (f, Some(s)));
                let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
                let is_there = file.exists();
                let has_section = section.is_none_or(|section| {
                    is_there && anchors(&fs::read_to_string(&file).unwrap_or_default()).contains(section)
                });
                if !is_there || !has_section {
                    broken.push(format!("{}: {target}", path.display()));
                }
            }
        }
        assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    }

    #[test]
    fn each_invariant_names_its_module_and_a_test_that_exists() {
        let page = read("docs/ARCHITECTURE.md");
        let (_, invariants) = page.split_once("## Invariants").unwrap();
        let known = functions();
        let mut count = 0;
        for paragraph in invariants.split("**Invariant: ").skip(1) {
            count += 1;
            let title = paragraph.lines().next().unwrap();
            let (_, evidence) =
                paragraph.split_once("Enforced in ").unwrap_or_else(|| panic!("no module: {title}"));
            let (modules, tests) =
                evidence.split_once("tested by").unwrap_or_else(|| panic!("no test: {title}"));
            let tests = tests.split("\n\n").next().unwrap();
            for module in code_spans(modules) {
                assert!(root().unwrap().join(module).exists(), "{title}: {module} does not exist");
            }
            let mut named = 0;
            for test in code_spans(tests) {
                named += 1;
                assert!(known.contains(test), "{title}: there is no test {test}");
            }
            assert!(named > 0, "{title}: no test is named");
        }
        assert!(count > 20, "{count} invariants");
    }

    #[test]
    fn files_named_on_the_map_exist() {
        let page = read("docs/ARCHITECTURE.md");
        let files: Vec<&str> =
            code_spans(&page).filter(|span| span.ends_with(".rs") && span.contains('/')).collect();
        assert!(files.len() > 20, "{files:?}");
        for file in files {
            assert!(root().unwrap().join(file).is_file(), "{file} does not exist");
        }
    }

    #[test]
    fn each_lesson_names_tests_that_exist() {
        let known = functions();
        let page = read("docs/lessons.md");
        let rows: Vec<&str> =
            page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")).collect();
        assert!(rows.len() > 30, "{} lessons", rows.len());
        for row in rows {
            let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
            let mut named = 0;
            for test in code_spans(tests) {
                named += 1;
                assert!(known.contains(test), "there is no test {test}: {row}");
            }
            assert!(named > 0 || tests.contains("not built yet"), "no test is named: {row}");
        }
    }

    #[test]
    fn glossary_types_exist() {
        let code: String = sources().into_iter().map(|(_, text)| text).collect();
        for row in read("docs/glossary.md").lines().filter(|line| line.starts_with("| ")) {
            let place = row.split('|').nth(3).unwrap_or_default();
            for name in code_spans(place) {
                assert!(code.contains(name), "the glossary names `{name}`, which is not in the code: {row}");
            }
        }
    }

    #[test]
    fn tasks_named_in_pages_exist() {
        let mut unknown = Vec::new();
        for (path, text) in pages() {
            for rest in text.split("cargo xtask ").skip(1) {
                let task: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
                let is_known = crate::USAGE.contains(&format!("{task} ")) || crate::USAGE.ends_with(&task);
                if !is_known && task != "TASK" {
                    unknown.push(format!("{}: {task}", path.display()));
                }
            }
        }
        assert!(unknown.is_empty(), "there are no such tasks:\n{}", unknown.join("\n"));
    }
}
