package ledger

import "github.com/rollcall-registry/rollcall/internal/registry"

// Record is one entry of the history.
type Record struct {
	// Seq numbers the records in the order in which they were emitted. It only
	// grows, over restarts too, and it leaps after a crash.
	Seq uint64
	// Event is what happened. At has the wall time only, as the lease clock begins
	// anew with each start. Its texts share one piece of memory: whoever keeps a
	// few of them for long copies them.
	//
	// Instance is complete, except in records of removals and of health, which
	// carry its key, Ephemeral and Healthy alone. Subscriber has its key and
	// protocol. Took is to the microsecond.
	Event registry.Event
	// Count is the number of missing records, the ones before Seq, that a record
	// of kind [Lost] stands for; else 0.
	Count uint64
}

// The kinds of records that the ledger itself writes.
const (
	// Started: the ledger was opened. Detail says how it ended the last time.
	Started registry.EventKind = "history started"
	// Stopped: the ledger ended in order; all records before it are on disk.
	Stopped registry.EventKind = "history stopped"
	// Lost: the disk could not keep up, and Count records are not there.
	Lost registry.EventKind = "history lost"
)

// The details of [Started].
const (
	endedNever    = "first start"
	endedInOrder  = "after an orderly stop"
	endedByACrash = "after a crash"
)

// The members of a record on disk. They are a file format: a name is never
// given another meaning. Members with their zero value are left out, except
// sequence, time and kind.
const (
	fieldSeq  = "q" // sequence number
	fieldTime = "t" // wall time, milliseconds since the Unix epoch
	fieldKind = "k" // kind of event

	fieldNamespace = "ns" // service key
	fieldGroup     = "g"
	fieldService   = "s"

	fieldCluster   = "c" // instance key
	fieldIP        = "ip"
	fieldPort      = "p"
	fieldEphemeral = "e" // 1 or 0, present in every record with an instance
	fieldHealthy   = "h" // flags are 1 or absent

	fieldWeight    = "w" // the rest of an instance, in records that carry it whole
	fieldEnabled   = "en"
	fieldMarked    = "mk"
	fieldHideID    = "hid"
	fieldSerial    = "sn"
	fieldOwnID     = "oi" // the ID that the client chose
	fieldUncluster = "uc" // 1 or 2: how the client wrote that it names no cluster
	fieldApp       = "app"
	fieldMetadata  = "md" // object of strings, keys sorted, no blanks

	fieldBase = "b" // what the owner registered: 1 for the same as above, or an object of those
	// of fieldWeight, fieldEnabled, fieldApp and fieldMetadata that an override may change

	fieldOwner    = "o" // http, connection or durable, present with an instance
	fieldClient   = "cl"
	fieldRevision = "rv"

	fieldCause       = "ck" // cause
	fieldAPI         = "a"
	fieldOp          = "op"
	fieldFrom        = "f"
	fieldActor       = "by"
	fieldCauseDetail = "cd"

	fieldSubscriber         = "su" // address and port, present in every record with a subscriber
	fieldSubscriberProtocol = "sp"
	fieldSubscriberClient   = "sc"
	fieldSubscriberAgent    = "sa"
	fieldSubscriberClusters = "sl"
	fieldTook               = "tk" // microseconds

	fieldDetail = "x" // detail of the event
	fieldCount  = "n" // missing records
	// "z" is the checksum; see line.go.
)

// keyOnly reports whether records of this kind carry no more of the instance
// than its key and state: replay needs no more, and they are the most frequent
// ones when a registry is in trouble.
func keyOnly(kind registry.EventKind) bool {
	switch kind {
	case registry.InstanceRemoved, registry.InstanceHealthy, registry.InstanceUnhealthy:
		return true
	default:
		return false
	}
}
