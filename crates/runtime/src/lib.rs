//! What a tool is, and the life of one call.
