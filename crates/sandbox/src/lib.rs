//! The only code that opens a path or changes a file on a tool's behalf.
