use proptest::prelude::*;

use super::*;

fn place(flag_key: &str, targeting_key: &str) -> u32 {
    Bucketing::new(flag_key).place(targeting_key)
}

/// Returns shares with whole weights. Each variant is its index.
fn shares(weights: &[u32]) -> Shares {
    let weights = weights.iter().map(|weight| weight * 1_000);
    Shares::new(weights.zip(0..))
}

#[test]
fn hashes_match_flagd() {
    for (text, expected) in [
        ("ejOoVL", 0),
        ("bY9fO-", 1),
        ("SI7p-", 2_147_483_647),
        ("6LvT0", 2_147_483_648),
        ("ceQdGm", 4_294_967_295),
    ] {
        assert_eq!(place("", text), expected, "{text}");
        assert_eq!(place(text, ""), expected, "{text}");
    }
    for (flag_key, targeting_key, expected) in [
        ("fractional-flag", "jack", 2_682_799_072),
        ("fractional-flag", "queen", 4_278_517_551),
        ("fractional-flag", "ten", 801_845_258),
        ("fractional-flag", "nine", 1_406_129_861),
        ("fractional-flag", "3", 604_371_928),
        ("fractional-flag-shorthand", "jon@company.com", 618_039_204),
        ("fractional-flag-shorthand", "jane@company.com", 2_316_038_310),
        ("new-checkout", "user-1", 1_954_156_369),
        ("new-checkout", "user-2", 986_941_360),
        ("new-checkout", "user-3", 3_312_559_254),
        ("new-checkout", "user-é", 417_090_306),
        ("dark-mode", "user-1", 1_094_101_778),
        ("dark-mode", "user-2", 251_438_273),
    ] {
        assert_eq!(place(flag_key, targeting_key), expected, "{flag_key} {targeting_key}");
    }
}

/// Returns the bucket's number, with one share per bucket.
fn bucket(buckets: usize, place: u32) -> usize {
    Shares::new((0..buckets).map(|index| (1_000, index))).at(place).unwrap()
}

#[test]
fn buckets_match_flagd() {
    for (flag_key, targeting_key, buckets, expected) in [
        ("fractional-flag", "jack", 100, 62),
        ("fractional-flag", "queen", 100, 99),
        ("fractional-flag", "ten", 100, 18),
        ("fractional-flag", "nine", 100, 32),
        ("fractional-flag", "3", 100, 14),
        ("fractional-flag-shorthand", "jon@company.com", 2, 0),
        ("fractional-flag-shorthand", "jane@company.com", 2, 1),
        ("new-checkout", "user-1", 100_000, 45_498),
        ("new-checkout", "user-2", 100_000, 22_979),
        ("new-checkout", "user-3", 100_000, 77_126),
        ("new-checkout", "user-é", 100_000, 9_711),
        ("dark-mode", "user-1", 100_000, 25_474),
        ("dark-mode", "user-2", 100_000, 5_854),
    ] {
        let found = bucket(buckets, place(flag_key, targeting_key));
        assert_eq!(found, expected, "{flag_key} {targeting_key}");
    }
}

#[test]
fn line_ends_are_in_the_outer_shares() {
    let shares = shares(&[0, 1, 0, 1, 0]);
    assert_eq!(shares.at(0), Some(1));
    assert_eq!(shares.at(0x7fff_ffff), Some(1));
    assert_eq!(shares.at(0x8000_0000), Some(3));
    assert_eq!(shares.at(u32::MAX), Some(3));
}

#[test]
fn largest_rollouts_do_not_overflow() {
    let shares = Shares::new((0..1_000).map(|index| (1_000_000_000, index)));
    assert_eq!(shares.at(0), Some(0));
    assert_eq!(shares.at(u32::MAX), Some(999));
}

#[test]
fn share_sizes_match_their_weights() {
    const IDS: u32 = 100_000;
    for weights in [&[50, 50][..], &[1, 1, 1], &[10, 90], &[1, 9, 90], &[1, 99_999], &[7; 13]] {
        let shares = shares(weights);
        let mut counts = vec![0_u32; weights.len()];
        for id in 0..IDS {
            counts[shares.at(place("new-checkout", &format!("user-{id}"))).unwrap()] += 1;
        }
        let total = f64::from(weights.iter().sum::<u32>());
        for (count, weight) in counts.iter().zip(weights) {
            let share = f64::from(*weight) / total;
            let expected = share * f64::from(IDS);
            let sigma = (f64::from(IDS) * share * (1.0 - share)).sqrt();
            let off = (f64::from(*count) - expected).abs();
            assert!(off <= 4.0 * sigma, "{weights:?}: {counts:?}");
        }
    }
}

#[test]
fn flags_split_independently_of_each_other() {
    const IDS: u32 = 20_000;
    // Keys with small differences, and keys on which weaker hashes correlate.
    let keys = [
        "new-checkout-v2",
        "new-checkouu",
        "checkout",
        "search",
        "flag-1",
        "flag-2",
        "flag-4",
        "dark-mode",
        "a",
        "b",
        "aa",
    ];
    let halves: Vec<Vec<bool>> = keys
        .iter()
        .map(|key| (0..IDS).map(|id| place(key, &format!("user-{id}")) < 1 << 31).collect())
        .collect();
    for (index, one) in halves.iter().enumerate() {
        for (other_index, other) in halves.iter().enumerate().skip(index + 1) {
            let phi = phi(one, other);
            assert!(phi.abs() < 0.025, "{} and {}: {phi}", keys[index], keys[other_index]);
        }
    }
}

/// Returns the correlation of two properties of the same individuals.
fn phi(one: &[bool], other: &[bool]) -> f64 {
    let count = |wanted: (bool, bool)| {
        let pairs = one.iter().copied().zip(other.iter().copied());
        f64::from(u32::try_from(pairs.filter(|pair| *pair == wanted).count()).unwrap())
    };
    let (both, first, second, none) =
        (count((true, true)), count((true, false)), count((false, true)), count((false, false)));
    let margins = (both + first) * (second + none) * (both + second) * (first + none);
    (both * none - first * second) / margins.sqrt()
}

proptest! {
    #[test]
    fn hashing_in_pieces_equals_hashing_the_whole(flag_key: String, targeting_key: String) {
        let whole = format!("{flag_key}{targeting_key}");
        prop_assert_eq!(place(&flag_key, &targeting_key), place("", &whole));
    }

    #[test]
    fn places_are_in_the_share_that_covers_them(
        weights in prop::collection::vec(0_u32..1_000_000_000, 1..20),
        place: u32,
    ) {
        let total: u128 = weights.iter().copied().map(u128::from).sum();
        prop_assume!(total > 0);
        let found = Shares::new(weights.iter().copied().zip(0..)).at(place).unwrap();
        let before: u128 = weights[..found].iter().copied().map(u128::from).sum();
        let scaled = u128::from(place) * total;
        prop_assert!(weights[found] > 0);
        prop_assert!((before << 32) <= scaled);
        prop_assert!(scaled < ((before + u128::from(weights[found])) << 32));
    }

    #[test]
    fn growing_first_shares_keep_their_individuals(
        first in 0_u32..1_000_000,
        growth in 0_u32..1_000_000,
        others in prop::collection::vec(0_u32..1_000_000, 1..5),
        places in prop::collection::vec(any::<u32>(), 200),
    ) {
        let with_first = |first| shares(&[&[first], others.as_slice()].concat());
        let (before, after) = (with_first(first), with_first(first + growth));
        for place in places {
            prop_assert!(before.at(place) != Some(0) || after.at(place) == Some(0));
        }
    }

    #[test]
    fn appended_shares_move_individuals_only_forward(
        weights in prop::collection::vec(1_u32..1_000_000, 1..5),
        appended in 0_u32..1_000_000,
        places in prop::collection::vec(any::<u32>(), 200),
    ) {
        let (before, after) = (shares(&weights), shares(&[weights.as_slice(), &[appended]].concat()));
        for place in places {
            prop_assert!(before.at(place) <= after.at(place));
        }
    }
}
