use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn project() -> ProjectId {
    ProjectId::parse("01902f3c-0000-7000-8000-000000000000").unwrap()
}

#[test]
fn digests_are_due_for_one_day() {
    for now in ["2026-11-22T23:00:00Z", "2026-11-23T07:59:59.999Z", "2026-11-24T08:00:00Z"] {
        assert_eq!(Week::due_at(at(now)), None, "{now}");
    }
    let week = Week::due_at(at("2026-11-23T08:00:00Z")).unwrap();
    assert_eq!(Week::due_at(at("2026-11-24T07:59:59Z")), Some(week));
    assert_eq!(week.begin(), at("2026-11-16T08:00:00Z"));
    assert_eq!(Week::due_at(Timestamp::from_millis(0)), None);
}

#[test]
fn weeks_have_iso_8601_numbers() {
    // The number of the week before each Monday.
    for (end, number) in [
        ("2026-11-23T08:00:00Z", 202_647),
        ("2026-01-05T08:00:00Z", 202_601),
        ("2027-01-04T08:00:00Z", 202_653),
        ("2027-01-11T08:00:00Z", 202_701),
        ("2025-01-06T08:00:00Z", 202_501),
    ] {
        assert_eq!(Week::due_at(at(end)).unwrap().number(), number, "{end}");
    }
}

#[test]
fn digests_have_counts_and_three_lines_each() {
    let week = Week::due_at(at("2026-11-23T08:00:00Z")).unwrap();
    assert_eq!(Digest::default().domain_events(project(), &week), []);

    let visibility = Visibility::Project(project());
    let trending = |number: u32| {
        let (kind, now) = (DomainEventKind::InsightTrending, week.end);
        let title = format!("Insight {number}");
        DomainEvent::new(kind, visibility.clone(), number, &title, now).detailed("+250%")
    };
    let digest = Digest {
        errors: ErrorSummary { events: 1_204, new_errors: 0, most_frequent: Vec::new() },
        trending: (1..=5).map(trending).collect(),
        flags: Vec::new(),
    };
    let lines = digest.domain_events(project(), &week);
    let titles: Vec<&str> = lines.iter().map(|line| line.title.as_str()).collect();
    let counts = "1,204 events, 5 trending insights";
    assert_eq!(titles, [counts, "Insight 1", "Insight 2", "Insight 3"]);
    assert_eq!(
        (lines[1].subject.as_str(), lines[1].detail.as_str()),
        ("insight/1", "trending insight, +250%")
    );
    assert!(lines.iter().all(|line| line.instance == 202_647 && line.at == week.end));
    assert!(lines.is_sorted_by(|one, other| one.weight > other.weight));
}
