//! Command-line parts of servebench: arguments, plan, progress, exit codes.
