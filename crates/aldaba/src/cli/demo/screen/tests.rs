use super::*;
use crate::cli::demo::SHOWN_EVENTS;
use crate::cli::demo::recent_events::RecentEvents;

const PLAIN: Style = Style { colour: false, blocks: true };
const COLOUR: Style = Style { colour: true, blocks: true };

fn picture() -> Picture {
    let mut recent_events = RecentEvents::default();
    for number in 0..20 {
        let what = format!("answered 503 in a way that takes {number} many words to describe it");
        recent_events.note(Duration::from_secs(number), "warehouse", what, Some("again in 16 s".into()));
    }
    let row = EndpointRow {
        delivered: 123_456,
        waiting: 98_765,
        dead: 12_345,
        retries: 9999,
        last: "refused".into(),
        p50: Some(Duration::from_millis(999)),
        p99: Some(Duration::from_secs(1234)),
        health: EndpointHealth::Held(Duration::from_secs(16)),
        bars: [7; BARS],
    };
    Picture {
        address: "http://127.0.0.1:65535".into(),
        elapsed: Duration::from_secs(3599),
        rate: 1000,
        totals: Totals {
            accepted: 999_999,
            expected: 1_109_997,
            delivered: 999_999,
            waiting: 99_999,
            attempts: 999_999,
            failed: 99_999,
            dead: 9999,
            ..Totals::default()
        },
        behaviours: ENDPOINTS.each_ref().map(|script| script.behaviour(Duration::from_secs(12))),
        rows: std::array::from_fn(|_| row.clone()),
        recent_events: recent_events.lines(SHOWN_EVENTS),
        hint: "look closer: ".repeat(20),
        ending: None,
    }
}

/// Without the escape codes.
fn visible(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').unwrap().1)
}

#[test]
fn a_picture_fits_every_terminal_from_80_by_24_on() {
    for (columns, rows) in
        [(80, 24), (84, 24), (85, 24), (91, 30), (92, 30), (97, 24), (116, 40), (117, 40), (200, 60)]
    {
        for style in [PLAIN, COLOUR] {
            let lines = picture().lines(TerminalSize { columns, rows }, style);
            assert!(lines.len() < rows, "{columns}×{rows}: {} lines", lines.len());
            for line in &lines {
                let width = visible(line).chars().count();
                assert!(width <= columns, "{columns}: {width} in {line}");
            }
        }
    }
}

#[test]
fn a_low_terminal_gets_the_top_of_the_picture() {
    let lines = picture().lines(TerminalSize { columns: 80, rows: 10 }, PLAIN);
    assert_eq!(lines.len(), 9);
    assert!(lines[0].starts_with("Aldaba demo"));
}

#[test]
fn a_picture_has_the_same_height_however_much_there_is_to_tell() {
    let full = picture();
    let empty = Picture { recent_events: Vec::new(), ..full.clone() };
    let size = TerminalSize { columns: 80, rows: 24 };
    assert_eq!(full.lines(size, PLAIN).len(), empty.lines(size, PLAIN).len());
}

#[test]
fn without_colours_there_is_no_escape_code() {
    let lines = picture().lines(TerminalSize { columns: 120, rows: 40 }, PLAIN);
    assert!(lines.iter().all(|line| !line.contains('\x1b')));
    let coloured = picture().lines(TerminalSize { columns: 120, rows: 40 }, COLOUR);
    assert!(coloured.iter().any(|line| line.contains("\x1b[31m")));
    let shown: Vec<_> = coloured.iter().map(|line| visible(line)).collect();
    assert_eq!(shown, lines);
}

#[test]
fn a_terminal_without_blocks_gets_only_what_it_has() {
    let mut picture = picture();
    picture.recent_events[0] = {
        let mut recent_events = RecentEvents::default();
        for _ in 0..2 {
            recent_events.note(Duration::ZERO, "shop", "answered 503".into(), None);
        }
        recent_events.lines(1).remove(0)
    };
    let style = Style { colour: false, blocks: false };
    let lines = picture.lines(TerminalSize { columns: 80, rows: 24 }, style);
    assert!(lines.iter().all(|line| line.is_ascii()), "{lines:#?}");
}

#[test]
fn an_endpoint_that_is_down_says_for_how_long() {
    let mut picture = picture();
    picture.elapsed = Duration::from_secs(12);
    let lines = picture.lines(TerminalSize { columns: 80, rows: 24 }, PLAIN);
    let partner = lines.iter().find(|line| line.starts_with("partner")).unwrap();
    assert!(partner.contains("down 11 s"), "{partner}");
}

#[test]
fn bars_scale_to_the_fullest_and_show_the_least() {
    let mut seconds = [0; BARS];
    seconds[BARS - 1] = 100;
    seconds[BARS - 4] = 1;
    assert_eq!(bars(&seconds, 10, true), "        ▁█");
    assert_eq!(bars(&seconds, 10, false), "        .#");
    assert_eq!(bars(&seconds, 5, false), "    #");
    assert_eq!(bars(&seconds, BARS, true).chars().count(), BARS);
    assert_eq!(bars(&[0; BARS], 10, true).trim(), "");
}

#[test]
fn numbers_and_times_are_short() {
    assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([9999, 10_000, 2_000_000].map(short), ["9,999", "10k", "2M"]);
    let times = [4, 1_250, 14_000].map(|millis| time(Some(Duration::from_millis(millis))));
    assert_eq!(times, ["4ms", "1.2s", "14s"]);
    assert_eq!(time(None), "-");
}

#[test]
fn the_plain_line_has_the_totals_and_who_misbehaves() {
    let line = picture().plain();
    assert!(
        line.contains("events 999999  deliveries 1109997 = delivered 999999 + waiting 99999 + dead 9999"),
        "{line}"
    );
    assert!(line.contains("warehouse slow") && line.contains("partner down"), "{line}");
    assert!(!line.contains("shop"), "{line}");
}

#[test]
fn the_summary_says_what_became_of_everything() {
    let totals =
        Totals { accepted: 600, expected: 1920, delivered: 1880, attempts: 2001, ..Totals::default() };
    let totals = Totals { waiting: 36, dead: 4, ..totals };
    let legacy = EndpointCounts { deliveries: 90, delivered: 50, waiting: 36, dead: 4 };
    let lanes = std::array::from_fn(|lane| {
        if ENDPOINTS[lane].name == "legacy" { legacy } else { EndpointCounts::default() }
    });
    let final_counts = FinalCounts { totals, lanes, lost: 0 };
    let text =
        final_counts.summary(Duration::from_secs(30), Duration::ZERO, Some(Duration::from_millis(2100)));
    assert!(text.starts_with("After 30 s:\n"), "{text}");
    let waited = final_counts.summary(Duration::from_secs(30), Duration::from_secs(5), None);
    assert!(waited.starts_with("After 30 s of events, and 5 s for what was due:\n"), "{waited}");
    for part in ["accepted         600", "1,880", "next attempt, the first in 3 s", "\nlost: 0 "] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("refused") && !text.contains("forged"), "{text}");
    let legacy = text.lines().find(|line| line.trim_start().starts_with("legacy ")).expect("its line");
    assert_eq!(legacy.split_whitespace().collect::<Vec<_>>(), ["legacy", "90", "50", "36", "4"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn every_column_has_a_head_and_an_explanation_where_there_is_room() {
    let row = |size| {
        let lines = picture().lines(size, PLAIN);
        let head = lines.iter().position(|line| line.starts_with("endpoint")).unwrap();
        (lines.clone(), lines[head].clone(), lines[head + 1].clone())
    };
    let (lines, head, shop) = row(TerminalSize { columns: 200, rows: 60 });
    // Dead ones of each endpoint stand under their head.
    let end = head.find("dead").unwrap() + 4;
    assert_eq!(&shop[end - 3..end], "12k", "{head}\n{shop}");
    let explained = LEGEND.join(" ");
    for column in ["now", "deliv", "wait", "dead", "retry", "last", "p50", "p99", "health"] {
        assert!(head.contains(column) && explained.contains(column), "{column}");
    }
    for line in LEGEND {
        assert!(lines.contains(&line.to_owned()), "{line}");
    }
    let (lines, _, _) = row(TerminalSize { columns: 80, rows: 24 });
    assert!(!lines.iter().any(|line| line.starts_with("deliveries =")), "there is no room");
}

#[test]
fn without_a_terminal_only_what_is_printed_is_explained() {
    let line = picture().plain();
    let explained = LINE_LEGEND.join(" ");
    for word in ["deliveries", "delivered", "waiting", "dead", "attempts", "failed"] {
        assert!(line.contains(word) && explained.contains(word), "{word}");
    }
    for column in ["deliv ", "wait ", "retry", "p50", "p99", "health", "last 30 s"] {
        assert!(!line.contains(column) && !explained.contains(column), "{column}");
    }
}
