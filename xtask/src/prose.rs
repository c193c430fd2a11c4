//! `cargo xtask prose`: finds phrases in documents and comments that readers stumble over. The rules are those
//! of `CONTRIBUTING.md`, "Writing".

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Findings per 1,000 words that a folder can have.
const BUDGET: usize = 2;

/// Phrases, in lower case and as whole words, and their remedy.
const PHRASES: [(&[&str], &str); 8] = [
    (&["whoever", "nobody", "somebody", "anybody", "everybody"], "name the role"),
    (&["what is asked", "all that is", "that which"], "name the thing"),
    (
        &["is told", "are told", "tells", "remembers", "forgets", "wants to know"],
        "say what the code does",
    ),
    (
        &["anew", "once more", "for good", "in vain", "hence", "thereby", "besides"],
        "use a plain word",
    ),
    (&["e-mail", "e-mails", "a mail", "mails"], "write `email`"),
    (&["may not"], "write `cannot` or `must not`"),
    (&["under way", "to and fro"], "use a plain word"),
    (&["stands in", "held against"], "use a plain word"),
];
/// Words that begin a doc comment of a sentence without a noun.
const OPENERS: [&str; 5] = ["what", "how", "whether", "where", "who"];

/// A finding.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    text: String,
    remedy: &'static str,
}

/// Checks files of the workspace: those that differ from the main line, or all. Returns what to report, or
/// `Err` with it if a folder exceeds its budget.
pub(crate) fn run(root: &Path, all: bool) -> Result<Vec<String>, String> {
    let files = if all { git(root, &["ls-files"])? } else { changed(root)? };
    let mut folders: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    for file in files {
        let Some(comments) = comment_marks(&file) else { continue };
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        let (words, findings) = check(&text, comments);
        let folder = file.split('/').next().unwrap_or_default().to_owned();
        let (total, lines) = folders.entry(folder).or_default();
        *total += words;
        let shown = |it: Finding| format!("{file}:{}: {}: {}", it.line, it.text, it.remedy);
        lines.extend(findings.into_iter().map(shown));
    }
    let exceeds = |words: usize, found: usize| found > 0 && found * 1_000 > BUDGET * words;
    let is_over = folders.values().any(|(words, lines)| exceeds(*words, lines.len()));
    let lines = folders.into_values().flat_map(|(_, lines)| lines).collect::<Vec<_>>();
    if is_over {
        let budget =
            format!("more than {BUDGET} findings per 1,000 words of a folder; see CONTRIBUTING.md");
        return Err(format!("{}\n{budget}", lines.join("\n")));
    }
    Ok(lines)
}

/// Returns the files that differ from the main line, and files that are new.
fn changed(root: &Path) -> Result<Vec<String>, String> {
    let base = git(root, &["merge-base", "HEAD", "origin/main"])
        .or_else(|_| git(root, &["rev-parse", "HEAD"]))?;
    let mut files =
        git(root, &["diff", "--name-only", base.first().map_or("HEAD", String::as_str)])?;
    files.extend(git(root, &["ls-files", "--others", "--exclude-standard"])?);
    Ok(files)
}

fn git(root: &Path, arguments: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new("git").current_dir(root).args(arguments).output();
    let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {} failed", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Returns what begins the prose of a file's lines: nothing in documents, comment marks in code. `None` if the
/// file has no prose to check.
fn comment_marks(file: &str) -> Option<&'static [&'static str]> {
    let is_foreign = ["/corpus/", "/recorded/", "/queries/", "tests/conformance/", "/data/"];
    // This file lists the phrases.
    if is_foreign.iter().any(|part| file.contains(part)) || file.ends_with("xtask/src/prose.rs") {
        return None;
    }
    match Path::new(file).extension()?.to_str()? {
        "md" => Some(&[""]),
        "rs" => Some(&["//!", "///", "//"]),
        "ts" | "tsx" | "mjs" => Some(&["/**", "*", "//"]),
        "py" | "sh" | "toml" | "yaml" | "yml" => Some(&["#"]),
        _ => None,
    }
}

/// Returns the words of a file's prose, and the findings in it.
fn check(text: &str, marks: &[&str]) -> (usize, Vec<Finding>) {
    let (mut words, mut findings) = (0, Vec::new());
    let (mut is_code, mut was_prose) = (false, false);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        let Some(mark) = marks.iter().find(|mark| line.starts_with(**mark)) else {
            was_prose = false;
            continue;
        };
        let prose = line[mark.len()..].trim();
        if prose.starts_with("```") {
            is_code = !is_code;
        }
        if is_code || prose.starts_with("```") {
            continue;
        }
        let prose = without_code(prose).to_lowercase();
        let of_line: Vec<&str> =
            prose.split(|it: char| !it.is_alphanumeric() && !"-'".contains(it)).collect();
        let of_line: Vec<&str> = of_line.into_iter().filter(|word| !word.is_empty()).collect();
        words += of_line.len();
        let padded = format!(" {} ", of_line.join(" "));
        for (phrases, remedy) in PHRASES {
            for phrase in phrases.iter().filter(|it| padded.contains(&format!(" {it} "))) {
                findings.push(Finding { line: number, text: (*phrase).to_owned(), remedy });
            }
        }
        if *mark == "///"
            && !was_prose
            && let Some(first) = of_line.first().filter(|word| OPENERS.contains(word))
        {
            let remedy = "begin with a noun or a verb";
            findings.push(Finding { line: number, text: (*first).to_owned(), remedy });
        }
        was_prose = true;
    }
    (words, findings)
}

/// Returns a line without its inline code and URLs.
fn without_code(line: &str) -> String {
    let outside = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    outside.split_whitespace().filter(|word| !word.contains("://")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, marks: &[&str]) -> Vec<(usize, String)> {
        check(text, marks).1.into_iter().map(|it| (it.line, it.text)).collect()
    }

    #[test]
    fn phrases_are_found_in_prose_only() {
        let rust = "//! Whoever reads.\nlet nobody = 1;\n/// A `nobody`.\n// once more";
        let expected = [(1, "whoever".to_owned()), (4, "once more".to_owned())];
        assert_eq!(found(rust, &["//!", "///", "//"]), expected);
        assert_eq!(
            found("```\nnobody\n```\nSomebody's.\nnobody", &[""]),
            [(5, "nobody".to_owned())]
        );
    }

    #[test]
    fn doc_comments_begin_with_a_noun_or_a_verb() {
        let rust =
            "/// Whether it is.\n/// How it is.\nfn a() {}\n/// Returns it.\n/// What it is.";
        assert_eq!(found(rust, &["//!", "///", "//"]), [(1, "whether".to_owned())]);
    }

    #[test]
    fn words_of_prose_are_counted() {
        assert_eq!(check("Two words, `code` and https://a.example/b.", &[""]).0, 3);
    }
}
