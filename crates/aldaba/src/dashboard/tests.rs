//! What holds for all pages.

use super::texts::Tongue;

#[test]
fn the_pseudo_language_marks_every_text() {
    use super::texts::ShellTexts;
    assert_eq!(<dyn ShellTexts>::of(Tongue::Pseudo).log_out(), "⟦Log out⟧");
}
