// Package ledger keeps every event of the registry with its cause: the history
// that answers "who removed my instance", and the log from which ephemeral
// instances are rebuilt after a restart.
//
// # How it works
//
// [Ledger.Emit] is called under a lock of the registry. It encodes the event as
// one line into a chunk of memory and returns; it never waits for a disk. One
// goroutine, [Ledger.Run], writes the chunks to segment files: at once when the ledger
// was quiet, else about every 100 ms.
// The same chunks, until they are evicted, are the recent history. Nothing is
// synced per write: a killed process loses the last moment, a machine without
// power perhaps some seconds.
//
// When the disk is slower than the registry, or full, chunks pile up in memory
// to a limit. Past it the oldest unwritten chunk is dropped, so that the recent
// past stays readable, and once the disk accepts writes again a record of kind
// [Lost] takes the place of what is missing. From then on the log alone cannot
// rebuild the registry, so [Ledger.SnapshotWanted] asks for a snapshot.
//
// # On disk
//
// A segment is history-<first sequence number>.ndjson: a header line, then one
// JSON object per record. The first three members of a record are always its
// sequence number, time and kind, the last one is a CRC-32C of all before it, so
// a line can be verified and filtered without being parsed. Readers ignore
// members they do not know. The names of the members are in record.go.
//
// A line cut short by a crash is cut off when the ledger is opened. A damaged
// line elsewhere is skipped, counted and logged.
//
// A [Ledger] is safe for concurrent use, except where a method says otherwise.
// It leaves the meaning of a replayed event, the snapshots, and the words shown
// to people to others.
package ledger
