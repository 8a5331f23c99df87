use super::*;

fn policies() -> Vec<Policy> {
    choose(ServerOptions::default(), &Config::default(), &BTreeMap::new())
        .expect("the built-in policies are valid")
}

fn persistent(outage: Option<Duration>) -> String {
    preview(find(&policies(), "persistent").expect("it is built in"), outage, 0)
}

#[test]
fn a_preview_lists_attempts_and_draws_them() {
    let expected = "\
persistent: the receiver goes down for 1m 30s (seed 0)

   1          0s              fails
   2          2s         +2s  fails
   3          6s         +4s  fails
   4         14s         +8s  fails
   5         30s        +16s  fails
   6      1m 2s        +32s  fails
   7      2m 6s      +1m 4s  delivered
";
    let shown = persistent(Some(Duration::from_secs(90)));
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&shown).starts_with(&squeezed(expected)), "{shown}");
    assert!(shown.contains("Arrives after 2m 6s, 36s after the receiver is back."), "{shown}");
    let line = shown.lines().find(|line| line.contains('✓')).expect("a picture");
    assert_eq!((line.chars().count(), line.matches('×').count()), (PICTURE_WIDTH, 6), "{shown}");
}

#[test]
fn a_long_plan_is_cut_in_the_middle() {
    let shown = persistent(None);
    assert!(shown.contains("…  143 more"), "{shown}");
    assert!(shown.contains(" 158 "), "{shown}");
    assert!(shown.contains("Ends in the dead letter after 158 attempts (stop_date)."), "{shown}");
}

#[test]
fn an_unknown_name_says_which_there_are() {
    let policies = policies();
    let error = find(&policies, "eager").expect_err("no such policy");
    assert_eq!(
        error.to_string(),
        "there is no policy `eager`; there are job-status, persistent, public-api, quick, standard. --url names a running \
         server and --data a data folder, whose own policies are known then; `policy preview` takes a file too (./FILE)"
    );
    let error = find(&policies, "quik").expect_err("no such policy").to_string();
    assert!(
        error.starts_with("there is no policy `quik`; did you mean `quick`? There are job-status, "),
        "{error}"
    );
}

#[test]
fn the_list_has_a_line_for_each() {
    let shown = list(&policies());
    assert_eq!(shown.lines().count(), 6);
    let line = shown.lines().find(|line| line.starts_with("public-api")).expect("a line");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["public-api", "6", "1h", "8m", "15s"]);
}

#[test]
fn the_axis_names_moments_where_they_are_and_what_it_measures() {
    let shown = persistent(Some(Duration::from_secs(90)));
    let lines: Vec<_> = shown.lines().collect();
    let axis = lines.iter().position(|line| line.starts_with("0s ")).expect("the numbers of the axis");
    assert_eq!(
        lines[axis].split_whitespace().collect::<Vec<_>>(),
        ["0s", "1s", "5s", "15s", "1m", "2m", "6s"]
    );
    assert_eq!(lines[axis].len(), PICTURE_WIDTH, "{shown}");
    assert_eq!(lines[axis + 1], AXIS);
    // A minute is just before the attempt after 1m 2s.
    let picture = lines.iter().find(|line| line.contains('✓')).expect("a picture");
    let attempts: Vec<_> = picture.chars().enumerate().filter(|(_, c)| *c == '×').map(|(at, _)| at).collect();
    let minute = lines[axis].find("1m").expect("a minute");
    assert!(attempts[5].abs_diff(minute) <= 1, "{shown}");
    // A plan of less than a second has an axis too.
    let brief = r#"{"name": "brief", "schedule": {"type": "list", "delays": ["100ms"]}}"#;
    let shown = preview(&import::read(brief).expect("a policy")[0], None, 0);
    assert!(shown.contains("\n0s ") && shown.contains(AXIS), "{shown}");
}
