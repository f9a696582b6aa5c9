//! Our tools as an MCP server, in every era of the protocol. The only crate that knows `rmcp`.
