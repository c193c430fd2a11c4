//! All weights by which readings compete.

/// Which rule reads an element that several could read, from the most special to the plainest.
pub(crate) mod rule {
    pub(crate) const LABELLED_TEXT: f32 = 100.0;
    pub(crate) const TEXT_IN_LABEL: f32 = 90.0;
    pub(crate) const MENTIONED: f32 = 80.0;
    pub(crate) const ADDRESS: f32 = 70.0;
    pub(crate) const QUOTE: f32 = 100.0;
    pub(crate) const NUMBER: f32 = 100.0;
    pub(crate) const RESET: f32 = 100.0;
    pub(crate) const ANY: f32 = 90.0;
    pub(crate) const EDIT: f32 = 80.0;
    pub(crate) const NO_MATTER: f32 = 70.0;
    pub(crate) const KEPT: f32 = 60.0;
    pub(crate) const EDITED: f32 = 50.0;
    pub(crate) const BOOLEAN: f32 = 40.0;
    pub(crate) const ABSENCE: f32 = 30.0;
    pub(crate) const PRESENCE: f32 = 20.0;
    pub(crate) const VALUE: f32 = 10.0;
}
