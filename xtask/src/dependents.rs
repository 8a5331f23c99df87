//! The lines in the documentation that depend on unpublished crates must resolve. Whole programs are built elsewhere, as
//! the examples of the documentation; this checks the manifest only, which is cheap.

use crate::background::Folder;
use crate::run::{read, root};
use std::fs;
use std::process::Command;

/// A page and its crate.
const PAGES: [(&str, &str); 3] = [
    ("client.md", "aldaba-client"),
    ("embedding.md", "aldaba-embedded"),
    ("receiving.md", "aldaba-receiver"),
];

/// The TOML blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Resolves dependencies with the locked versions of this repository and without a network.
fn resolved(dependencies: &str) -> Result<String, String> {
    let folder = Folder::new()?;
    let manifest =
        format!("[package]\nname = \"dependent\"\nedition = \"2024\"\n\n{dependencies}\n[workspace]\n");
    fs::create_dir(folder.0.join("src")).unwrap();
    fs::write(folder.0.join("src/main.rs"), "fn main() {}\n").unwrap();
    fs::write(folder.0.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.0.join("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    read(Command::new(cargo).args(["tree", "--offline", "--depth", "1"]).current_dir(&folder.0))
}

#[test]
fn a_project_beside_a_clone_can_depend_on_it_with_the_documented_lines() {
    let clone = root().display().to_string();
    for (page, name) in PAGES {
        let block = blocks(page).into_iter().find(|block| block.contains("[dependencies]")).expect(page);
        assert!(
            block.contains(&format!("{name} = {{ path = \"../aldaba/crates/{name}\"")),
            "{page}: {block}"
        );
        let tree =
            resolved(&block.replace("../aldaba", &clone)).unwrap_or_else(|why| panic!("{page}: {why}"));
        assert!(
            tree.contains(&format!("{name} v")) && tree.contains(&format!("{clone}/crates/{name}")),
            "{tree}"
        );
    }
}

#[test]
fn documented_dependencies_name_existing_crates_and_features() {
    for (page, name) in &PAGES[..2] {
        let block = blocks(page).into_iter().find(|block| block.contains("git = ")).expect(page);
        let line = block.lines().find(|line| line.contains("git = ")).unwrap();
        assert!(
            line.starts_with(&format!("{name} = {{ git = \"https://")) && line.contains(", rev = \""),
            "{line}"
        );
        // With a path instead of the address, cargo finds the same name.
        let path = format!("{name} = {{ path = \"{}\" }}", root().join("crates").join(name).display());
        resolved(&format!("[dependencies]\n{path}\n")).unwrap_or_else(|why| panic!("{page}: {why}"));
    }
    let client = root().join("crates/aldaba-client");
    let apalis = format!("aldaba-client = {{ path = \"{}\", features = [\"apalis\"] }}", client.display());
    resolved(&format!("[dependencies]\n{apalis}\n")).unwrap();
}
