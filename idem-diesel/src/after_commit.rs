//! What a handler does once its effects are durable.

/// What runs once the effects are durable.
///
/// ```
/// let nothing = idem_diesel::AfterCommit::default();
/// assert!(nothing.is_empty());
/// nothing.run();
/// ```
#[derive(Default)]
#[must_use = "hooks that are dropped never run"]
pub struct AfterCommit(Vec<Box<dyn FnOnce() + Send>>);

impl AfterCommit {
    pub(crate) fn push(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.0.push(Box::new(hook));
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs the hooks in the order in which they were given. Only after the commit that made their effects durable.
    pub fn run(self) {
        for hook in self.0 {
            hook();
        }
    }
}
