use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) type TaskResult = Result<(), String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// A cargo command at the root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command with its output shown; anything but success is an error that names it.
pub(crate) fn show(command: &mut Command) -> TaskResult {
    println!("\n$ {}", written(command));
    let status = command.status().map_err(|error| format!("{}: {error}", written(command)))?;
    if status.success() { Ok(()) } else { Err(format!("failed ({status}): {}", written(command))) }
}

/// Runs a command and returns what it printed.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", written(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("failed ({}): {}\n{errors}", output.status, written(command)));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{}: printed no text", written(command)))
}

fn written(command: &Command) -> String {
    let mut words = vec![Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
