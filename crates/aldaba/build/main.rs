//! Makes pages of README.md, of the guides in `docs/` and of the recipes in `docs/recipes/`, to be served at `/docs/guides`, and says
//! which commit the build is of.

mod commit;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// Where the repository is, as seen from this package.
const ROOT: &str = "../..";

/// The folders of guides, and what the names of their pages begin with.
const FOLDERS: [(&str, &str); 2] = [("docs", ""), ("docs/recipes", "recipes/")];

/// The page that every visitor of the repository sees first, and the name of its guide: the index of all guides is called `README`.
const OVERVIEW: (&str, &str) = ("README.md", "overview");

/// A page that is served.
struct Guide {
    /// In the repository, such as `docs/recipes/sending.md`.
    path: String,
    /// On the server, such as `recipes/sending`.
    name: String,
}

/// Writes a list of all guides: name, title, HTML.
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={ROOT}/docs");
    println!("cargo:rerun-if-changed={ROOT}/{}", OVERVIEW.0);
    println!("cargo:rustc-env=ALDABA_COMMIT={}", commit());
    let guides = guides()?;
    let mut pages = Vec::new();
    for guide in &guides {
        let markdown = fs::read_to_string(Path::new(ROOT).join(&guide.path))?;
        let title = markdown.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.ok_or_else(|| format!("{} has no title; begin it with `# `", guide.path))?;
        pages.push((&guide.name, title.to_owned(), render(&markdown, &guide.path, &guides)));
    }
    // By title; the index, where there is one, comes first.
    pages.sort_by_key(|(name, title, _)| (*name != "README", title.to_lowercase()));
    let mut list = "&[\n".to_owned();
    for (name, title, page) in &pages {
        writeln!(list, "    Guide {{ name: {name:?}, title: {title:?}, html: {page:?} }},")?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guides.rs"), list)?;
    Ok(())
}

/// What the variable says, or git. In builds for tests a commit would build everything anew that depends on this package, so they
/// do not know it.
fn commit() -> String {
    println!("cargo:rerun-if-env-changed=ALDABA_COMMIT");
    if let Ok(commit) = env::var("ALDABA_COMMIT") {
        return commit;
    }
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let checkout = is_release.then(|| commit::checkout(Path::new(".")));
    let Some(checkout) = checkout.flatten() else { return "unknown".into() };
    checkout.files.iter().for_each(|file| println!("cargo:rerun-if-changed={}", file.display()));
    checkout.commit
}

fn guides() -> Result<Vec<Guide>, Box<dyn Error>> {
    let mut guides = vec![Guide { path: OVERVIEW.0.into(), name: OVERVIEW.1.into() }];
    for (folder, prefix) in FOLDERS {
        for entry in fs::read_dir(Path::new(ROOT).join(folder))? {
            let file = entry?.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".md")) {
                guides.push(Guide { path: format!("{folder}/{name}.md"), name: format!("{prefix}{name}") });
            }
        }
    }
    Ok(guides)
}

/// `path` is where the page lies in the repository: its links are relative to that.
fn render(markdown: &str, path: &str, guides: &[Guide]) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event<'_>> = Vec::new();
    let (mut heading, mut leads_nowhere) = (0, false);
    for event in Parser::new_ext(markdown, options) {
        match event {
            // Comments for the tests that run the examples; pages have no HTML of their own.
            Event::InlineHtml(tag) if &*tag == "<br>" => events.push(Event::HardBreak),
            Event::Html(_) | Event::InlineHtml(_) => continue,
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                match address(&dest_url, path, guides) {
                    Some(dest_url) => events.push(Event::Start(Tag::Link { link_type, dest_url, title, id })),
                    None => leads_nowhere = true,
                }
            }
            Event::End(TagEnd::Link) if leads_nowhere => leads_nowhere = false,
            event => {
                if matches!(event, Event::Start(Tag::Heading { .. })) {
                    heading = events.len();
                }
                let ends = matches!(event, Event::End(TagEnd::Heading(_)));
                events.push(event);
                if ends {
                    name_heading(&mut events[heading..]);
                }
            }
        }
    }
    let mut page = String::with_capacity(markdown.len() * 5 / 4);
    html::push_html(&mut page, events.into_iter());
    page
}

/// Where a link of a guide leads on the server. `None`: to a file that is not served.
fn address<'a>(written: &str, from: &str, guides: &[Guide]) -> Option<CowStr<'a>> {
    if written.starts_with('#') || written.contains("://") {
        return Some(written.to_owned().into());
    }
    let (file, place) = written.split_at(written.find('#').unwrap_or(written.len()));
    let path = resolved(file, from);
    let guide = guides.iter().find(|guide| guide.path == path)?;
    Some(format!("/docs/guides/{}{place}", guide.name).into())
}

/// The path in the repository that a link means on the page at `from`.
fn resolved(link: &str, from: &str) -> String {
    let mut parts: Vec<_> = from.split('/').collect();
    // The page itself: links are relative to its folder.
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Gives a heading the id by which links find it: its words in lower case, with hyphens between them.
fn name_heading(heading: &mut [Event<'_>]) {
    let mut name = String::new();
    for event in &*heading {
        if let Event::Text(text) | Event::Code(text) = event {
            let letters =
                text.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'));
            name.extend(
                letters.flat_map(char::to_lowercase).map(|sign| if sign == ' ' { '-' } else { sign }),
            );
        }
    }
    if let Some(Event::Start(Tag::Heading { id, .. })) = heading.first_mut() {
        *id = Some(name.into());
    }
}
