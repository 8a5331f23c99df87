//! The Debian packages, by dpkg-deb. The control files and the scripts of dpkg are in `packaging/debian`.

use super::binary::Stripped;
use super::part;
use crate::background::Folder;
use crate::run::{TaskResult, read, root, show};
use crate::tools;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How much time the compression takes.
#[derive(Clone, Copy)]
pub(super) enum Compression {
    Small,
    /// For packages that are only tested.
    Quick,
}

const DOCUMENTATION: &str = "usr/share/doc/aldaba";

/// The package of the server. Returns its file.
pub(super) fn server(
    stripped: &Stripped,
    version: &str,
    compression: Compression,
    into: &Path,
) -> Result<PathBuf, String> {
    let tree = Tree::new()?;
    tree.put(&stripped.program, "usr/bin/aldaba", "0755")?;
    tree.put(&part("systemd/aldaba.service"), "usr/lib/systemd/system/aldaba.service", "0644")?;
    tree.put(&part("etc/aldaba.toml"), "etc/aldaba/aldaba.toml", "0640")?;
    tree.put(&part("etc/aldaba.env"), "etc/aldaba/aldaba.env", "0600")?;
    for page in pages()? {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tree.put(&page, &format!("{DOCUMENTATION}/{name}"), "0644")?;
    }
    tree.licences()?;
    for script in ["postinst", "prerm", "postrm"] {
        tree.put(&part("debian").join(script), &format!("DEBIAN/{script}"), "0755")?;
    }
    tree.put(&part("debian/conffiles"), "DEBIAN/conffiles", "0644")?;
    let libraries = libraries(&stripped.program)?;
    tree.build("control", &[("VERSION", version), ("LIBRARIES", &libraries)], compression, into)
}

/// The package of the debug symbols. Returns its file.
pub(super) fn symbols(
    stripped: &Stripped,
    version: &str,
    compression: Compression,
    into: &Path,
) -> Result<PathBuf, String> {
    let tree = Tree::new()?;
    tree.put(&stripped.symbols, &stripped.path_of_symbols(), "0644")?;
    tree.build("control-dbgsym", &[("VERSION", version)], compression, into)
}

/// The pages for operators and users.
fn pages() -> Result<Vec<PathBuf>, String> {
    let docs = root().join("docs");
    let files = fs::read_dir(&docs).map_err(|error| format!("{}: {error}", docs.display()))?;
    let mut pages: Vec<_> = files.flatten().map(|file| file.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages.push(root().join("CHANGELOG.md"));
    Ok(pages)
}

/// The packages with the shared libraries of a program, as a list of dependencies.
fn libraries(program: &Path) -> Result<String, String> {
    if Command::new("dpkg-shlibdeps").arg("--version").output().is_err() {
        tools::install(&["dpkg-dev"])?;
    }
    // It reads the names of the packages that are built, even where none matters.
    let source = Folder::new()?;
    let control = source.0.join("debian/control");
    let failed = |error| format!("{}: {error}", control.display());
    fs::create_dir_all(source.0.join("debian")).map_err(failed)?;
    fs::write(&control, "Source: aldaba\n\nPackage: aldaba\nArchitecture: any\n").map_err(failed)?;
    let said = read(Command::new("dpkg-shlibdeps").arg("-O").arg(program).current_dir(&source.0))?;
    let found = said.trim().strip_prefix("shlibs:Depends=").filter(|list| !list.is_empty());
    found.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps found no libraries: {said}"))
}

/// The files of a package.
struct Tree(Folder);

impl Tree {
    fn new() -> Result<Self, String> {
        let tree = Self(Folder::new()?);
        // The mode of the root folder is that of `/` in the package.
        read(Command::new("chmod").arg("0755").arg(&tree.0.0))?;
        Ok(tree)
    }

    fn put(&self, source: &Path, path: &str, mode: &str) -> TaskResult {
        let target = self.0.0.join(path);
        read(Command::new("install").args(["-D", "--mode", mode]).arg(source).arg(target)).map(drop)
    }

    fn licences(&self) -> TaskResult {
        let text =
            |name: &str| fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"));
        let both = format!(
            "Aldaba is under MIT or Apache-2.0, at your choice.\n\n{}\n\n{}",
            text("LICENSE-MIT")?,
            text("LICENSE-APACHE")?
        );
        self.write(&format!("{DOCUMENTATION}/copyright"), &both)
    }

    fn write(&self, path: &str, text: &str) -> TaskResult {
        let written = self.0.0.join(path);
        fs::write(&written, text).map_err(|error| format!("{}: {error}", written.display()))?;
        read(Command::new("chmod").arg("0644").arg(&written)).map(drop)
    }

    /// Writes the control file and the checksums, and packs everything.
    fn build(
        &self,
        control: &str,
        values: &[(&str, &str)],
        compression: Compression,
        into: &Path,
    ) -> Result<PathBuf, String> {
        let folder = &self.0.0;
        let architecture = read(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
        let size = read(Command::new("du").args(["--summarize", "--apparent-size", "-k"]).arg(folder))?;
        let size = size.split_whitespace().next().unwrap_or_default();
        let template = part("debian").join(control);
        let mut text =
            fs::read_to_string(&template).map_err(|error| format!("{}: {error}", template.display()))?;
        let own = [("ARCHITECTURE", architecture.as_str()), ("KIBIBYTES", size)];
        for (name, value) in own.iter().chain(values) {
            text = text.replace(&format!("@{name}@"), value);
        }
        let package = field(&text, "Package")?;
        let file = into.join(format!("{package}_{}_{architecture}.deb", field(&text, "Version")?));
        read(Command::new("install").args(["--directory", "--mode", "0755"]).arg(folder.join("DEBIAN")))?;
        self.write("DEBIAN/control", &text)?;
        let sums = "find usr -type f -print0 | sort --zero-terminated | xargs --null md5sum";
        self.write("DEBIAN/md5sums", &read(Command::new("sh").args(["-c", sums]).current_dir(folder))?)?;
        fs::create_dir_all(into).map_err(|error| format!("{}: {error}", into.display()))?;
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", compression.option(), "--build"]);
        show(build.arg(folder).arg(&file))?;
        Ok(file)
    }
}

impl Compression {
    fn option(self) -> &'static str {
        match self {
            Self::Small => "-Zxz",
            Self::Quick => "-Znone",
        }
    }
}

/// The value of a field of a control file.
fn field<'a>(control: &'a str, name: &str) -> Result<&'a str, String> {
    let found = control.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.ok_or_else(|| format!("the control file has no `{name}`:\n{control}"))
}
