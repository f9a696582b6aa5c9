//! Standard input and output of this process, read and written as soon as they are ready.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream as StdStream,
    },
};

use rustix::fs::FileType;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{UnixStream, unix::pipe},
};

/// What messages are read from.
pub type MessageReader = Box<dyn AsyncRead + Send + Unpin>;
/// What answers are written to.
pub type MessageWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Where the messages of a client come from. For a file or a terminal, which cannot be waited for, tokio keeps a thread.
pub fn input() -> io::Result<MessageReader> {
    let end = io::stdin();
    let kind = kind(end.as_fd())?;
    if kind.is_fifo() {
        return Ok(Box::new(pipe::Receiver::from_owned_fd(end.as_fd().try_clone_to_owned()?)?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(end.as_fd())?));
    }
    Ok(Box::new(tokio::io::stdin()))
}

/// Where the answers go.
pub fn output() -> io::Result<MessageWriter> {
    let end = io::stdout();
    let kind = kind(end.as_fd())?;
    if kind.is_fifo() {
        return Ok(Box::new(pipe::Sender::from_owned_fd(end.as_fd().try_clone_to_owned()?)?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(end.as_fd())?));
    }
    Ok(Box::new(tokio::io::stdout()))
}

fn kind(end: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(end)?.st_mode))
}

fn socket(end: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let socket = StdStream::from(end.try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
