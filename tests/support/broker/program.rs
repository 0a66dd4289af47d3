//! Where the program of a broker is on this machine.

use std::path::{Path, PathBuf};

/// What is looked for.
pub(crate) struct Program<'p> {
    pub(crate) name: &'p str,
    /// Names it, for machines with several versions.
    pub(crate) variable: &'p str,
    /// The package that brings it, on Debian.
    pub(crate) package: &'p str,
    /// Folders to look into before those of `PATH`.
    pub(crate) before_path: &'p [&'p str],
    /// Folders to look into after those of `PATH`.
    pub(crate) after_path: &'p [&'p str],
}

impl Program<'_> {
    /// The file, or a text that says how to get it.
    pub(crate) fn find(&self) -> Result<PathBuf, String> {
        if let Some(path) = std::env::var_os(self.variable) {
            return named(self.variable, Path::new(&path));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let before = self.before_path.iter().map(PathBuf::from);
        let after = self.after_path.iter().map(PathBuf::from);
        before
            .chain(std::env::split_paths(&path))
            .chain(after)
            .map(|folder| folder.join(self.name))
            .find(|path| path.is_file())
            .ok_or_else(|| {
                format!(
                    "these tests need {} and this machine has none.\n\
                     Install it (Debian, Ubuntu: apt-get install {}), or set {} to the path of the program.",
                    self.name, self.package, self.variable
                )
            })
    }
}

fn named(variable: &str, path: &Path) -> Result<PathBuf, String> {
    if path.is_file() {
        Ok(path.to_owned())
    } else {
        Err(format!(
            "{variable} names {}, which is no file",
            path.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_an_error_that_says_how_to_get_it() {
        let program = Program {
            name: "idem-no-such-server",
            variable: "IDEM_TEST_NO_SUCH_SERVER",
            package: "no-such-package",
            before_path: &[],
            after_path: &[],
        };
        let error = program.find().unwrap_err();
        assert!(error.contains("apt-get install no-such-package"), "{error}");
        assert!(error.contains("IDEM_TEST_NO_SUCH_SERVER"), "{error}");
    }

    #[test]
    fn a_variable_must_name_a_file() {
        let error = named("VARIABLE", Path::new("/no/such/file")).unwrap_err();
        assert_eq!(error, "VARIABLE names /no/such/file, which is no file");
    }
}
