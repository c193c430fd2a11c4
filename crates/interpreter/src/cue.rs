//! The classes of steering phrases, as `data/en/phrases.txt` names them.

/// An enum whose members have the names that a file in `data/en/` uses.
macro_rules! classes {
    ($(#[$doc:meta])* $enum:ident: $($name:ident = $text:literal, $means:literal;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $enum { $(#[doc = $means] $name,)* }

        impl $enum {
            /// The class of this name in the data file.
            pub(crate) fn parse(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

pub(crate) use classes;

classes! {
    /// What a steering phrase does.
    Class:
    Not = "not", "Denies what follows.";
    Except = "except", "Takes what follows out.";
    AnythingBut = "anything_but", "After a negator: nothing but what follows.";
    Twice = "twice", "Within another denial: what follows is wanted.";
    Contrast = "contrast", "Denies, or takes out of an exclusion before it.";
    No = "no", "Denies what follows, or that it is there.";
    Inability = "inability", "Says that something does not work; denies no filter.";
    Unexclude = "unexclude", "Removes a denial.";
    SplitRemove = "split_remove", "With a later out or off: removes.";
    SplitReadmit = "split_readmit", "With a later back: removes a denial.";
    SplitExcept = "split_except", "With a later out: denies.";
    Rest = "rest", "All filters that have not been named.";
    Neither = "neither", "Denies a list.";
    Likewise = "likewise", "What follows is meant as what stands before.";
    Nor = "nor", "Goes on denying.";
    AfterNot = "after_not", "Denies what stands before.";
    AfterAbsent = "after_absent", "Said after a label: has no value.";
    AfterPresent = "after_present", "Said after a label: has a value.";
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
    AfterGte = "after_gte", "Said after a number: or more.";
    AfterLte = "after_lte", "Said after a number: or less.";
    Between = "between", "Opens a range.";
    To = "to", "Stands between the ends of a range.";
    OfNumber = "of_number", "May stand between a number and its label.";
    BeforeNumber = "before_number", "May stand between a label and its number.";
    WithinLast = "within_last", "Before a span of time: at most so long ago.";
    Ago = "ago", "After a span of time: so long ago.";
    Is = "is", "Joins a label and its value.";
    ComparisonEnd = "exactly_from", "Ends a comparison that a label interrupts: more events than.";
    Contains = "contains", "Joins a label and a text in it.";
    Mentions = "mentions", "Precedes a text of the message.";
    InLabel = "in_label", "Stands between a text and its label.";
    NotContains = "not_contains", "Joins a label and a text that is not in it.";
    Add = "add", "Adds what follows.";
    AfterAdd = "after_add", "Adds what stands before.";
    Remove = "remove", "Removes filters.";
    Reset = "reset", "Removes all filters.";
    ResetVerb = "reset_verb", "Removes all filters when it stands alone.";
    FilterNoun = "filter_noun", "The word filter or one like it.";
    FilterWord = "filter_word", "The word filter itself.";
    ExclusionNoun = "exclusion_noun", "The word exclusion or one like it.";
    Any = "any", "Any value of the label that follows.";
    Regardless = "regardless", "Any value of the label that follows, and nothing else.";
    AfterAny = "after_any", "Any value of the label that stands before.";
    Both = "both", "All values that share the name that follows.";
    Keep = "keep", "Keeps filters.";
    Only = "only", "Nothing else.";
    AfterKeep = "after_keep", "Keeps the filters of the label that stands before.";
    Switch = "switch", "Replaces.";
    Replace = "replace", "Replaces the first by the second.";
    With = "with", "Stands between the replaced and its replacement.";
    InsteadOf = "instead_of", "What follows is replaced.";
    Instead = "instead", "Replaces.";
    Raise = "raise", "Changes a bound and keeps its direction.";
    Correction = "correction", "What stands before was a slip.";
    Interjection = "interjection", "Carries nothing, though it looks like a denial.";
    OrNot = "or_not", "Said after a boolean: either value.";
    Still = "still", "Carries nothing.";
    Flip = "flip", "Turns a filter into its opposite.";
    WithPresence = "with_presence", "Has a value.";
    MissingLabel = "missing_label", "Has no value.";
    Off = "off", "Said after a flag: it is not there.";
    Yes = "yes", "The value true.";
    False = "false", "The value false.";
    Polite = "polite", "Carries nothing.";
    Generic = "generic", "The thing searched.";
    Carrier = "carrier", "May stand between a negator and what it denies.";
}

impl Class {
    const fn bit(self) -> u128 {
        1 << self as u8
    }

    /// Whether a misspelt word may be taken for a phrase of this class.
    pub(crate) fn bears_typos(self) -> bool {
        !matches!(self, Self::Polite | Self::Carrier | Self::Is | Self::AfterAny | Self::Generic)
    }
}

/// The classes of one phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CueSet(u128);

impl CueSet {
    pub(crate) fn insert(&mut self, class: Class) {
        self.0 |= class.bit();
    }

    pub(crate) fn has(self, class: Class) -> bool {
        self.0 & class.bit() != 0
    }

    pub(crate) fn has_any(self, classes: &[Class]) -> bool {
        classes.iter().any(|class| self.has(*class))
    }

    /// Whether the phrase only carries nothing or carries a negation on.
    pub(crate) fn is_idle(self) -> bool {
        self.0
            & !(Class::Polite.bit()
                | Class::Carrier.bit()
                | Class::Still.bit()
                | Class::Generic.bit()
                | Class::SplitRemove.bit())
            == 0
    }
}
