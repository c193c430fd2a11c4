//! The classes of cue phrases, as named in `data/en/phrases.txt`.

/// Returns the name of a class in the data files: `after_not` for `AfterNot`.
pub(crate) fn snake_case(variant: &str) -> String {
    let mut name = String::with_capacity(variant.len() + 2);
    for letter in variant.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Defines the classes of a file of `data/en/`, which describes them.
macro_rules! classes {
    ($(#[$doc:meta])* $enum:ident: $($name:ident,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $enum { $($name,)* }

        impl $enum {
            /// Returns the classes by their names in the data file, such as `after_not`.
            pub(crate) fn by_name() -> ::std::collections::HashMap<String, Self> {
                [$(($crate::cue::snake_case(stringify!($name)), Self::$name)),*].into()
            }
        }
    };
}

classes! {
    /// The effect of a cue phrase.
    Class:
    Not, Except, AnythingBut, Twice, Contrast, No, Inability, Unexclude, SplitRemove,
    SplitReadmit, SplitExcept, Rest, Neither, Likewise, Nor, AfterNot, AfterAbsent,
    AfterPresent, And, Or, Comma, But, Stop, Gt, Gte, Lt, Lte, Eq, Ne, AfterGte, AfterLte,
    Between, To, OfNumber, BeforeNumber, WithinLast, Ago, Is, ComparisonEnd, Contains, Mentions,
    InLabel, NotContains, Add, AfterAdd, Remove, Reset, ResetVerb, FiltersBy, FilterNoun,
    FilterWord, ExclusionNoun, Any, Regardless, AfterAny, Both, Keep, Only, Switch, Replace,
    With, InsteadOf, Instead, Raise, Correction, Interjection, Flip, WithPresence, Approved,
    Off, Yes, False, Polite, Generic, Carrier,
}

impl Class {
    const fn bit(self) -> u128 {
        1 << self as u8
    }

    /// `true` if a misspelled word can match a phrase of this class.
    pub(crate) fn bears_typos(self) -> bool {
        !matches!(self, Self::Polite | Self::Carrier | Self::Is | Self::AfterAny | Self::Generic)
    }
}

/// The classes of one phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CueSet(u128);

/// The set of some classes: `cues![And, Or]`.
macro_rules! cues {
    ($($class:ident),*) => {
        const { $crate::cue::CueSet::of(&[$($crate::cue::Class::$class),*]) }
    };
}

impl CueSet {
    pub(crate) const fn of(mut classes: &[Class]) -> Self {
        let mut set = 0;
        while let [class, rest @ ..] = classes {
            set |= class.bit();
            classes = rest;
        }
        Self(set)
    }

    /// Returns the classes that both sets have.
    pub(crate) fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn insert(&mut self, class: Class) {
        self.0 |= class.bit();
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn has(self, class: Class) -> bool {
        self.0 & class.bit() != 0
    }

    pub(crate) fn has_any(self, classes: Self) -> bool {
        self.common(classes).0 != 0
    }

    /// `true` if the phrase has no effect, or only continues a negation.
    pub(crate) fn is_idle(self) -> bool {
        self.common(cues![Polite, Carrier, Generic, Approved, SplitRemove]) == self
    }
}
