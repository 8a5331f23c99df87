//! A tar archive (ustar) of small files.

use aldaba_delivery::Timestamp;

const BLOCK: usize = 512;

pub(super) struct Archive {
    bytes: Vec<u8>,
    seconds: i64,
}

impl Archive {
    /// All files get this time.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { bytes: Vec::new(), seconds: now.millis() / 1000 }
    }

    /// Adds a file. The name has less than 80 characters.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        let mut head = [0; BLOCK];
        let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, &format!("aldaba-support/{name}"));
        put(100, "0000600");
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{:011o}", content.len()));
        put(136, &format!("{:011o}", self.seconds.max(0)));
        // The checksum counts itself as spaces.
        put(148, "        ");
        put(156, "0");
        put(257, "ustar");
        put(263, "00");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(content);
        let padding = content.len().next_multiple_of(BLOCK) - content.len();
        self.bytes.resize(self.bytes.len() + padding, 0);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn tar_reads_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar");
        let mut archive = Archive::new(Timestamp::from_millis(1_800_000_000_000));
        archive.add("one.txt", b"first");
        archive.add("empty.txt", b"");
        archive.add("two.txt", &[b'x'; 1000]);
        std::fs::write(&file, archive.finish()).unwrap();
        let run = |arguments: &[&str]| {
            let output = Command::new("tar").args(arguments).arg(&file).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let names = "aldaba-support/one.txt\naldaba-support/empty.txt\naldaba-support/two.txt\n";
        assert_eq!(run(&["--list", "--file"]), names);
        let all = run(&["--extract", "--to-stdout", "--file"]);
        assert_eq!(all, format!("first{}", "x".repeat(1000)));
    }
}
