-- What organizations want to hear of, until it has been accepted as a message. AUTOINCREMENT, because a number
-- names its message and must never be given twice.
CREATE TABLE notice (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    org   BLOB NOT NULL,
    event TEXT NOT NULL,
    body  TEXT NOT NULL
);
