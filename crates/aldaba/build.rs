//! Makes pages of the guides in `docs/`, to be served at `/docs/guides`.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "../../docs";

/// Writes a list of all guides: name, title, HTML.
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={FOLDER}");
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER)? {
        let file = entry?.file_name();
        names.extend(file.to_str().and_then(|file| file.strip_suffix(".md")).map(str::to_owned));
    }
    let mut guides = Vec::new();
    for name in &names {
        let markdown = fs::read_to_string(Path::new(FOLDER).join(format!("{name}.md")))?;
        let title = markdown.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.ok_or_else(|| format!("docs/{name}.md has no title; begin it with `# `"))?;
        guides.push((name, title.to_owned(), render(&markdown, &names)));
    }
    // By title; the index, where there is one, comes first.
    guides.sort_by_key(|(name, title, _)| (*name != "README", title.to_lowercase()));
    let mut list = "&[\n".to_owned();
    for (name, title, page) in &guides {
        writeln!(list, "    Guide {{ name: {name:?}, title: {title:?}, html: {page:?} }},")?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guides.rs"), list)?;
    Ok(())
}

fn render(markdown: &str, guides: &[String]) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event<'_>> = Vec::new();
    let (mut heading, mut leads_nowhere) = (0, false);
    for event in Parser::new_ext(markdown, options) {
        match event {
            // Comments for the tests that run the examples; pages have no HTML of their own.
            Event::InlineHtml(tag) if &*tag == "<br>" => events.push(Event::HardBreak),
            Event::Html(_) | Event::InlineHtml(_) => continue,
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => match address(&dest_url, guides) {
                Some(dest_url) => events.push(Event::Start(Tag::Link { link_type, dest_url, title, id })),
                None => leads_nowhere = true,
            },
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
fn address<'a>(written: &str, guides: &[String]) -> Option<CowStr<'a>> {
    if written.starts_with('#') || written.contains("://") {
        return Some(written.to_owned().into());
    }
    let (file, place) = written.split_at(written.find('#').unwrap_or(written.len()));
    let name = file.strip_suffix(".md").filter(|name| guides.iter().any(|guide| guide == name))?;
    Some(format!("/docs/guides/{name}{place}").into())
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
