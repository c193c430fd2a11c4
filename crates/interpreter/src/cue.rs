//! The classes of cue phrases, as named in `data/en/phrases.txt`.

/// Defines an enum whose variants have names in a file of `data/en/`.
macro_rules! classes {
    ($(#[$doc:meta])* $enum:ident: $($name:ident = $text:literal, $means:literal;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $enum { $(#[doc = $means] $name,)* }

        impl $enum {
            /// Returns the class with this name in the data file.
            pub(crate) fn parse(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

classes! {
    /// The effect of a cue phrase.
    Class:
    Not = "not", "Negates the next mentions.";
    Except = "except", "Excludes the next mentions.";
    AnythingBut = "anything_but", "After a negator: allows only the next mentions.";
    Twice = "twice", "Within another negation: the next mentions are wanted.";
    Contrast = "contrast", "Negates, or limits a preceding exclusion.";
    No = "no", "Negates the next mentions, or says that they are absent.";
    Inability = "inability", "Says that something does not work. Negates no filter.";
    Unexclude = "unexclude", "Removes a negative filter.";
    SplitRemove = "split_remove", "With a later `out` or `off`: removes filters.";
    SplitReadmit = "split_readmit", "With a later `back`: removes a negative filter.";
    SplitExcept = "split_except", "With a later `out`: excludes.";
    Rest = "rest", "All filters that the query does not name.";
    Neither = "neither", "Negates a list.";
    Likewise = "likewise", "Gives the next mention the polarity of the previous one.";
    Nor = "nor", "Continues a negation.";
    AfterNot = "after_not", "Negates the previous mention.";
    AfterAbsent = "after_absent", "After a label: has no value.";
    AfterPresent = "after_present", "After a label: has a value.";
    And = "and", "Joins a list.";
    Or = "or", "Joins a list.";
    Comma = "comma", "Joins a list or ends a clause.";
    But = "but", "Ends a clause.";
    Stop = "stop", "Ends a clause.";
    Gt = "gt", "Greater than.";
    Gte = "gte", "Greater than or equal.";
    Lt = "lt", "Less than.";
    Lte = "lte", "Less than or equal.";
    Eq = "eq", "Equal.";
    Ne = "ne", "Not equal.";
    AfterGte = "after_gte", "After a number: or more.";
    AfterLte = "after_lte", "After a number: or less.";
    Between = "between", "Opens a range.";
    To = "to", "Separates the ends of a range.";
    OfNumber = "of_number", "Can separate a number from its label.";
    BeforeNumber = "before_number", "Can separate a label from its number.";
    WithinLast = "within_last", "Before a time span: at most that long ago.";
    Ago = "ago", "After a time span: that long ago.";
    Is = "is", "Joins a label and its value.";
    ComparisonEnd = "exactly_from", "Ends a comparison that a label interrupts: `more events than`.";
    Contains = "contains", "Joins a label and a text that it contains.";
    Mentions = "mentions", "Precedes a text of the error message.";
    InLabel = "in_label", "Joins a text and the label after it.";
    NotContains = "not_contains", "Joins a label and a text that it does not contain.";
    Add = "add", "Adds the next condition.";
    AfterAdd = "after_add", "Adds the previous condition.";
    Remove = "remove", "Removes filters.";
    Reset = "reset", "Removes all filters.";
    ResetVerb = "reset_verb", "Removes all filters when it is used alone.";
    FiltersBy = "filters_by", "Denied, it removes the filters of the next label.";
    FilterNoun = "filter_noun", "The word `filter` or a similar one.";
    FilterWord = "filter_word", "The word `filter` itself.";
    ExclusionNoun = "exclusion_noun", "The word `exclusion` or a similar one.";
    Any = "any", "Any value of the next label.";
    Regardless = "regardless", "Any value of the next label, without another meaning.";
    AfterAny = "after_any", "Any value of the previous label.";
    Both = "both", "All values that share the next name.";
    Keep = "keep", "Keeps filters.";
    Only = "only", "Nothing else.";
    Switch = "switch", "Replaces.";
    Replace = "replace", "Replaces one value with another.";
    With = "with", "Separates a replaced value from its replacement.";
    InsteadOf = "instead_of", "The next values are replaced.";
    Instead = "instead", "Replaces.";
    Raise = "raise", "Changes a bound and keeps its direction.";
    Correction = "correction", "The previous words were a mistake.";
    Interjection = "interjection", "Has no meaning, though it looks like a negation.";
    Flip = "flip", "Inverts a filter.";
    WithPresence = "with_presence", "Has a value.";
    Approved = "approved", "After a value: it is wanted, whatever precedes.";
    Off = "off", "After a flag: the flag is absent.";
    Yes = "yes", "The value true.";
    False = "false", "The value false.";
    Polite = "polite", "Has no meaning.";
    Generic = "generic", "The searched items.";
    Carrier = "carrier", "Can separate a negator from its target.";
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
